// Opens the SQLite file of a running server for a replica process, which mostly reads. The store reads on its caller's
// thread, because each thread of a store takes a tenth of a second to start. The thread that writes is started by the
// first write.

import { resolve } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ReplicaStore } from '../store.ts';
import { asOpeningError, asStoreError } from './errors.ts';
import { FileWatch, newOpenedFiles, type OpenedFiles } from './file-identity.ts';
import { ledgerStore } from './ledger.ts';
import type { Steps } from './pages.ts';
import { ReadingConnection } from './reading-connection.ts';
import { segmentStore } from './segments.ts';
import { connect } from './sqlite-store.ts';
import { superviseThread } from './store-thread.ts';
import { createLink } from './thread-calls.ts';
import { newThreadHealth } from './thread-health.ts';
import { type Callers, createLists, createLookUps, type Links } from './thread-operations.ts';
import { defaultTuning } from './tuning.ts';

const CACHE_KIB = 32 * 1024;

type Operation = (...args: readonly unknown[]) => unknown;
type Operations = Readonly<Record<string, Operation>>;

export function openReplicaStore(givenPath: string, onTrouble: (trouble: string) => void): ReplicaStore {
  const path = resolve(givenPath);
  const files = newOpenedFiles(path);
  const connection = openConnection(files);
  const lookUps = createLookUps(connection.database) as unknown as Operations;
  const lists = createLists(connection.database) as unknown as Operations;

  /** Waits for a turn first. Otherwise a caller that reads again and again would leave no time for anything else. */
  const read = async <Result>(run: () => Result): Promise<Result> => {
    await nextTurn();
    try {
      return connection.read(run);
    } catch (error) {
      throw asStoreError(error);
    }
  };
  const lookUp = (operation: string, args: readonly unknown[]): Promise<unknown> =>
    read(() => lookUps[operation]!(...args));
  const list = async (operation: string, args: readonly unknown[]): Promise<unknown> => {
    const steps = lists[operation]!(...args) as Steps<unknown>;
    for (;;) {
      const { done, value } = await read(() => steps.next());
      if (done === true) return value;
    }
  };

  const link: Links['writer'] = createLink('writer');
  let writer: ReturnType<typeof superviseThread> | null = null;
  let starting: Promise<void> | null = null;
  const startWriter = async (): Promise<void> => {
    const setup = { name: 'writer', path, tuning: defaultTuning, files, health: newThreadHealth() } as const;
    writer = superviseThread(setup, onTrouble);
    await writer.open();
    writer.join((status) => connect(link, status));
  };
  const write = async (...call: Parameters<Links['writer']['call']>): Promise<unknown> => {
    starting ??= startWriter().catch((error: unknown) => {
      starting = null;
      throw error;
    });
    await starting;
    return link.call(...call);
  };

  const callers = { writer: { call: write }, reader: { call: lookUp }, lister: { call: list } } as Callers;
  return {
    ...ledgerStore(callers),
    ...segmentStore(callers),
    async close() {
      await link.close();
      await writer?.close();
      connection.close();
    },
  };
}

function openConnection(files: OpenedFiles): ReadingConnection {
  try {
    return new FileWatch(files).open(() => new ReadingConnection(files, CACHE_KIB));
  } catch (error) {
    throw asOpeningError(files.path, error);
  }
}
