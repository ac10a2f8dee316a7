// The SQLite store as its callers use it, in any thread. The store packs the arguments of a call and sends the call to
// the right thread.

import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { IngestStore, Store } from '../store.ts';
import { asStoreError } from './errors.ts';
import type { OpenedFiles } from './file-identity.ts';
import { idempotencyStore } from './idempotency-records.ts';
import { interactionStore, interactionWriter } from './interactions.ts';
import { keyStore } from './keys.ts';
import { ledgerStore } from './ledger.ts';
import { organisationStore } from './organisations.ts';
import { ReadingConnection } from './reading-connection.ts';
import { dryRunInSteps, recordStore, recordWriter } from './records.ts';
import { segmentStore } from './segments.ts';
import { type ShownHealth, StoreHealth } from './store-health.ts';
import { createLink, type Link } from './thread-calls.ts';
import type { ThreadName } from './thread-loop.ts';
import { createLookUps, type Links, type LookUps, nobodys } from './thread-operations.ts';

/** How to reach a thread, or why it cannot be reached. */
export type ThreadStatus =
  | (ShownHealth & { readonly thread: ThreadName; readonly port: MessagePort })
  | { readonly thread: ThreadName; readonly lost: string };

/**
 * The size of the page cache for lookups. Reference checks read random places of the key indexes, and the inner pages
 * and often-read leaves of these indexes fit into this cache.
 */
const LOOK_UP_CACHE_KIB = 16 * 1024;

export function holdStore(): { readonly store: Store; onStatus(status: ThreadStatus): void } {
  const links: Links = {
    writer: createLink('writer'),
    reader: createLink('reader'),
    lister: createLink('lister'),
  };
  const { writer, reader, lister } = links;
  // The health check leaves the lister out, because without a lister the store still serves everything but lists.
  const health = new StoreHealth({ writer, reader });
  return {
    onStatus(status) {
      if ('port' in status && status.thread !== 'lister') health.watch(status.thread, status);
      connect(links[status.thread], status);
    },
    store: {
      ...organisationStore(links),
      ...keyStore(links),
      ...recordStore(links),
      ...interactionStore(links),
      ...idempotencyStore(links),
      ...ledgerStore(links),
      ...segmentStore(links),
      ping: () => health.assertServing(() => writer.call('ping', [], nobodys)),
      async close() {
        await Promise.all([writer.close(), reader.close(), lister.close()]);
      },
    },
  };
}

/** Lets another thread use an open store. */
export interface SqliteStoreHandle {
  readonly files: OpenedFiles;
  /** Receives the status of the writer. */
  readonly statusPort: MessagePort;
}

/**
 * Returns the store for an ingest thread. The store has its own connection for lookups, so that an upload involves no
 * thread other than the writer.
 */
export function attachSqliteStore({ files, statusPort }: SqliteStoreHandle): IngestStore {
  const writer: Links['writer'] = createLink('writer');
  const onStatus = (status: ThreadStatus): void => connect(writer, status);
  // Synchronously reads the statuses that were sent before the port arrived, so that the store is usable immediately.
  for (let first = receiveMessageOnPort(statusPort); first; first = receiveMessageOnPort(statusPort)) {
    onStatus(first.message as ThreadStatus);
  }
  statusPort.on('message', onStatus);
  statusPort.unref();
  let opened: { readonly connection: ReadingConnection; readonly lookUps: LookUps } | null = null;

  const lookUp = async <Result>(find: (lookUps: LookUps) => Result): Promise<Result> => {
    try {
      if (opened === null) {
        const connection = new ReadingConnection(files, LOOK_UP_CACHE_KIB);
        opened = { connection, lookUps: createLookUps(connection.database) };
      }
      const { connection, lookUps } = opened;
      return connection.read(() => find(lookUps));
    } catch (error) {
      throw asStoreError(error);
    }
  };

  return {
    existing: (...args) => lookUp((lookUps) => lookUps.existing(...args)),
    storedResponse: (...args) => lookUp((lookUps) => lookUps.storedResponse(...args)),
    async entryNumber(...args) {
      return (await lookUp((lookUps) => lookUps.entry(...args)))?.seq ?? null;
    },
    write: recordWriter({ writer }),
    dryRun: dryRunInSteps((...args) => lookUp((lookUps) => lookUps.dryRun(...args))),
    writeInteraction: interactionWriter({ writer }),
    async close() {
      await writer.close();
      statusPort.close();
      opened?.connection.close();
    },
  };
}

export function connect(link: Link<never>, status: ThreadStatus): void {
  if ('port' in status) link.connect(status.port);
  else link.lose(status.lost);
}
