// Opens a SQLite file as a store: starts the store's threads, and connects every user of the store to them.

import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { type Store, StoreUnusable } from '../store.ts';
import { companionOf, syncToDisk } from './database-files.ts';
import { newOpenedFiles, type OpenedFiles } from './file-identity.ts';
import { holdStore } from './sqlite-store.ts';
import { type SendStatus, superviseThread } from './store-thread.ts';
import { newThreadHealth } from './thread-health.ts';
import type { ThreadName } from './thread-loop.ts';
import { defaultTuning, type Tuning } from './tuning.ts';

export interface OpenSqliteStore extends Store {
  readonly files: OpenedFiles;
  /** Returns a port on which another thread receives the status of one of the store's threads. */
  statusPort(thread: ThreadName): MessagePort;
}

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
