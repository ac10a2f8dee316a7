// A read-only connection to a SQLite database.

import { DatabaseSync } from 'node:sqlite';
import { FileWatch, type OpenedFiles } from './file-identity.ts';

/**
 * How long a read waits for a lock. Reads wait only in the rare moments in which SQLite rebuilds or deletes the log.
 */
const LOCK_PATIENCE_MS = 5000;

export class ReadingConnection {
  readonly database: DatabaseSync;
  readonly #watch: FileWatch;

  constructor(files: OpenedFiles, cacheKib: number) {
    this.#watch = new FileWatch(files);
    this.#watch.assertInPlace();
    this.database = new DatabaseSync(files.path, {
      readOnly: true,
      enableForeignKeyConstraints: false,
      timeout: LOCK_PATIENCE_MS,
    });
    this.database.exec(`PRAGMA cache_size = -${cacheKib};`);
  }

  /**
   * Calls `run` in a single transaction, whose cost all reads of `run` share. Throws StoreUnavailable if a file of the
   * database is no longer at its path, because the contents of the open file, including keys, may be out of date.
   */
  read<Result>(run: () => Result): Result {
    this.#watch.assertInPlace();
    this.database.exec('BEGIN');
    try {
      return run();
    } finally {
      if (this.database.isTransaction) this.database.exec('COMMIT');
    }
  }

  close(): void {
    this.database.close();
  }
}
