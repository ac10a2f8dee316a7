// Many callers' jobs in one durable commit: the disk is waited for once for all of them.

import type { DatabaseSync } from 'node:sqlite';
import { done, failed, type Outcome } from './calls.ts';
import { asStoreError, retryWhileLocked } from './database.ts';

/** Work for a transaction. It may run more than once. */
export type Job<Result> = () => Result;

/**
 * Runs the jobs in one transaction, in order. If that fails, it is rolled back and each half is tried by itself, so
 * that in the end only the jobs that cannot be done fail, and a group on a full disk fails fast. If `mayStop` returns
 * true after a job, what was done is committed and the other jobs are not begun: they have no outcome.
 */
export function commitTogether(
  database: DatabaseSync,
  jobs: readonly Job<unknown>[],
  mayStop: () => boolean = () => false,
): readonly Outcome[] {
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
    // After some errors (a full disk is one) SQLite has rolled back by itself.
    if (database.isTransaction) database.exec('ROLLBACK');
    if (jobs.length === 1) return [failed(asStoreError(error))];
    const middle = Math.ceil(jobs.length / 2);
    return [
      ...commitTogether(database, jobs.slice(0, middle)),
      ...commitTogether(database, jobs.slice(middle)),
    ];
  }
}
