// Runs the jobs of many callers in one durable commit, so that they wait for the disk only once.

import type { DatabaseSync } from 'node:sqlite';
import { asStoreError, retryWhileLocked } from './errors.ts';
import { type CallResult, done, failed } from './thread-calls.ts';

/** A job of a transaction. It may run more than once. */
export type Job<Result> = () => Result;

/**
 * Runs the jobs in one transaction, in order. If that fails, the transaction is rolled back and each half is retried on
 * its own, so that only the jobs that cannot succeed fail. If `mayStop` returns true after a job, the jobs so far are
 * committed and the rest do not start: they have no outcome.
 */
export function commitTogether(
  database: DatabaseSync,
  jobs: readonly Job<unknown>[],
  mayStop: () => boolean = () => false,
): readonly CallResult[] {
  if (jobs.length === 0) return [];
  try {
    retryWhileLocked(() => database.exec('BEGIN IMMEDIATE'));
  } catch (error) {
    const outcome = failed(asStoreError(error));
    return jobs.map(() => outcome);
  }
  try {
    const results: unknown[] = [];
    for (const job of jobs) {
      results.push(job());
      if (mayStop()) break;
    }
    database.exec('COMMIT');
    return results.map(done);
  } catch (error) {
    // After some errors, such as a full disk, SQLite has already rolled back.
    if (database.isTransaction) database.exec('ROLLBACK');
    if (jobs.length === 1) return [failed(asStoreError(error))];
    const middle = Math.ceil(jobs.length / 2);
    return [
      ...commitTogether(database, jobs.slice(0, middle)),
      ...commitTogether(database, jobs.slice(middle)),
    ];
  }
}
