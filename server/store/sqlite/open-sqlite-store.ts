// Opens a SQLite file as a store: starts the store's threads, and connects every user of the store to them.

import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { MessageChannel, type MessagePort, type Transferable } from 'node:worker_threads';
import { storeThreadLimits } from '../../thread-memory.ts';
import { type StartedWorker, SupervisedWorker, startWorker } from '../../workers/supervised-worker.ts';
import { type Store, StoreUnavailable, StoreUnusable } from '../store.ts';
import { companionOf, syncToDisk } from './database-files.ts';
import { newOpenedFiles, type OpenedFiles } from './file-identity.ts';
import { holdStore, type ThreadStatus } from './sqlite-store.ts';
import { type CallResult, errorOf } from './thread-calls.ts';
import { newThreadHealth } from './thread-health.ts';
import type { Order, ThreadName, ThreadNews, ThreadSetup } from './thread-loop.ts';
import { defaultTuning, type Tuning } from './tuning.ts';

export interface OpenSqliteStore extends Store {
  readonly files: OpenedFiles;
  /** Returns a port on which another thread receives the status of one of the store's threads. */
  statusPort(thread: ThreadName): MessagePort;
}

type SendStatus = (status: ThreadStatus, transferList: readonly Transferable[]) => void;

/** Opens the store. Calls `onTrouble` with problems that the operator should know about but that no call reports. */
export async function openSqliteStore(
  givenPath: string,
  tuning: Tuning = defaultTuning,
  onTrouble: (trouble: string) => void = () => {},
): Promise<OpenSqliteStore> {
  const path = resolve(givenPath);
  makeReachable(path);
  const files = newOpenedFiles(path);
  const supervise = (name: ThreadName) =>
    superviseThread({ name, path, tuning, files, health: newThreadHealth() }, onTrouble);
  const threads = { writer: supervise('writer'), reader: supervise('reader'), lister: supervise('lister') };
  const { writer, ...others } = threads;
  const readers = Object.values(others);
  try {
    // The writer opens first, because it prepares the database.
    await writer.open();
    await Promise.all(readers.map((reader) => reader.open()));
  } catch (error) {
    await Promise.all([...readers, writer].map((thread) => thread.close()));
    throw error;
  }
  const { store, onStatus } = holdStore();
  for (const thread of [writer, ...readers]) thread.join(onStatus);
  let closing: Promise<void> | null = null;

  const close = async (): Promise<void> => {
    await store.close();
    // The writer closes last, so that its connection is the one that deletes the log.
    await Promise.all(readers.map((reader) => reader.close()));
    await writer.close();
  };

  return {
    ...store,
    files,
    statusPort(name) {
      const { port1, port2 } = new MessageChannel();
      const tell: SendStatus = (status, transferList) => port1.postMessage(status, transferList);
      threads[name].join(tell);
      port1.on('close', () => threads[name].leave(tell));
      port1.unref();
      return port2;
    },
    close: () => (closing ??= close()),
  };
}

function superviseThread(setup: ThreadSetup, onTrouble: (trouble: string) => void) {
  const { name, files, health } = setup;
  const holders = new Set<SendStatus>();

  const introduce = (tell: SendStatus): void => {
    const worker = supervised.running;
    if (worker === null) return;
    const { port1, port2 } = new MessageChannel();
    worker.postMessage({ kind: 'connect', port: port1 } satisfies Order, [port1]);
    tell({ thread: name, port: port2, files, health }, [port2]);
  };

  const sendLost = (reason: string): void => {
    for (const tell of holders) tell({ thread: name, lost: reason }, []);
  };

  const supervised = new SupervisedWorker({
    start: () => startThread(setup, onTrouble),
    whenReady: opened,
    onReady: () => holders.forEach(introduce),
    onLost({ message }, what) {
      sendLost(
        what === 'ended'
          ? `the store's ${name} thread ended unexpectedly (${message}) and is being started again`
          : `the store's ${name} thread cannot be started: ${message}`,
      );
    },
  });

  return {
    open: () => supervised.open(),
    /** Calls `tell` with the thread's status now, and whenever the thread is restarted or lost. */
    join(tell: SendStatus): void {
      holders.add(tell);
      introduce(tell);
    },
    leave: (tell: SendStatus) => holders.delete(tell),
    async close(): Promise<void> {
      await supervised.close((worker) => {
        worker.ref();
        worker.postMessage({ kind: 'close' } satisfies Order);
      });
      sendLost('the store is closed');
    },
  };
}

const scripts: Readonly<Record<ThreadName, URL>> = {
  writer: new URL('./writer-thread.ts', import.meta.url),
  reader: new URL('./reader-thread.ts', import.meta.url),
  lister: new URL('./reader-thread.ts', import.meta.url),
};

function startThread(setup: ThreadSetup, onTrouble: (trouble: string) => void): StartedWorker {
  const started = startWorker(scripts[setup.name], {
    workerData: setup,
    resourceLimits: storeThreadLimits,
  });
  started.worker.on('message', (news: ThreadNews) => {
    if (news.kind === 'trouble') onTrouble(news.message);
  });
  started.worker.unref();
  return started;
}

/**
 * Resolves when the thread has opened the database. Rejects with the thread's error, or with StoreUnavailable if the
 * thread ends without reporting one.
 */
async function opened({ worker, ended }: StartedWorker): Promise<void> {
  const told = new Promise<CallResult>((resolve) => {
    worker.on('message', (news: ThreadNews) => {
      if (news.kind !== 'trouble') resolve(news);
    });
  });
  worker.ref();
  worker.postMessage({ kind: 'open' } satisfies Order);
  const outcome = await Promise.race([told, ended]);
  worker.unref();
  if (outcome instanceof Error) {
    throw new StoreUnavailable(
      `a thread of the store ended before it could open the database: ${outcome.message}`,
    );
  }
  if (outcome.kind === 'done') return;
  await worker.terminate();
  throw errorOf(outcome);
}

/** Creates the folder of the database if it does not exist. Throws if the path can never hold a Headgate database. */
function makeReachable(path: string): void {
  try {
    makeFolder(dirname(path));
    const found = statSync(path, { throwIfNoEntry: false });
    if (found !== undefined && !found.isFile()) {
      throw new StoreUnusable(`the database ${path} is not a file: name a file`);
    }
    // Throws if there is a log without a database. SQLite would treat the log as a part of the new database and delete
    // it, together with the last acknowledged uploads.
    if (found === undefined && (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) {
      throw new StoreUnusable(
        `there is no database ${path}, but its log ${path}-wal exists, with the last uploads in it: the database was ` +
          'moved or deleted. Move it back; to start with a new one, move the log away first',
      );
    }
    const owner = companionOf(path);
    if (owner !== null) {
      throw new StoreUnusable(`the file ${path} belongs to the database ${owner}: name another file`);
    }
    accessSync(found === undefined ? dirname(path) : path, constants.R_OK | constants.W_OK);
  } catch (error) {
    if (error instanceof StoreUnusable) throw error;
    throw new StoreUnusable(`the database ${path} cannot be made or written: ${(error as Error).message}`);
  }
}

/**
 * Creates the folder and its missing parents. Syncs the parent of each new folder, because otherwise a power failure
 * could remove the folder together with acknowledged data.
 */
function makeFolder(folder: string): void {
  const found = statSync(folder, { throwIfNoEntry: false });
  if (found?.isDirectory()) return;
  if (found !== undefined)
    throw new StoreUnusable(`${folder} is not a folder: no database can be made in it`);
  makeFolder(dirname(folder));
  try {
    // Does not use the option `recursive`, with which Node loops forever if a parent exists but accepts no folders, as
    // in /proc.
    mkdirSync(folder);
  } catch (error) {
    // EEXIST means that another process with the same database has created the folder first.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  syncToDisk(dirname(folder));
}
