// Runs the jobs of many callers in one durable commit, so that they wait for the disk only once.

import type { DatabaseSync } from 'node:sqlite';
import { asStoreError } from './errors.ts';
import { retryWhileLocked } from './lock-waiting.ts';
import { type CallResult, done, failed } from './thread-calls.ts';

/**
 * Work that runs inside a transaction. It may run more than once, because a failed transaction is retried in halves.
 */
export type Job = () => unknown;

/** What is called in every transaction before the first job, and after the last one. */
export interface AroundJobs {
  begin(): void;
  end(): void;
}

/**
 * Runs the jobs in one transaction, in order, and returns their outcomes. If a job or the commit fails, the transaction
 * is rolled back and each half of the jobs is retried on its own, so that only the jobs that cannot succeed fail. If
 * `mayStop` returns true after a job, the jobs that have run are committed. The other jobs do not start and have no
 * outcome.
 */
export function commitTogether(
  database: DatabaseSync,
  jobs: readonly Job[],
  mayStop: () => boolean = () => false,
  around: AroundJobs | null = null,
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
    around?.begin();
    for (const job of jobs) {
      results.push(job());
      if (mayStop()) break;
    }
    around?.end();
    database.exec('COMMIT');
    return results.map(done);
  } catch (error) {
    // After some errors, such as a full disk, SQLite has already rolled the transaction back.
    if (database.isTransaction) database.exec('ROLLBACK');
    if (jobs.length === 1) return [failed(asStoreError(error))];
    const middle = Math.ceil(jobs.length / 2);
    return [
      ...commitTogether(database, jobs.slice(0, middle), undefined, around),
      ...commitTogether(database, jobs.slice(middle), undefined, around),
    ];
  }
}
