// The thread with the only writing connection.

import { catalogueTables } from '../tables.ts';
import { type Call, failed, type Outcome } from './calls.ts';
import { asStoreError, sleep } from './database.ts';
import { FileWatch } from './file-identity.ts';
import { commitTogether } from './group-commit.ts';
import { guardFiles } from './lost-files.ts';
import { SCHEMA_VERSION } from './migrations.ts';
import { giveBackRows } from './packed-rows.ts';
import { runThread, type Service, type ThreadSetup } from './thread.ts';
import { hasFailed, noteFailed, noteProgress, withHealth } from './thread-health.ts';
import { keepWal } from './wal.ts';
import { createWriteOperations, type Job, type PackedUpload } from './write-operations.ts';
import { openForWriting } from './writing-connection.ts';

/** A server that commits without pause lets other processes at the database this often, for this long. */
const LONGEST_HOLD_MS = 250;
const LETTING_GO_MS = 4;

function openWriter(setup: ThreadSetup, tellTrouble: (trouble: string) => void): Service {
  const { path, tuning, files, health } = setup;
  const watch = new FileWatch(files);
  const database = watch.open(() => openForWriting(path));
  const wal = keepWal(database, files, tuning, tellTrouble);
  const guard = guardFiles(watch, wal, tellTrouble);
  let lastRestMs = performance.now();
  let lastCommitMs = 0;

  const operations: WriterOperations = {
    ...createWriteOperations(database, catalogueTables),
    // After a failure only a write that reaches the disk can show that the store is able to serve again.
    ping: () => ({
      run: () => hasFailed(health) && database.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`),
    }),
  };

  const restIfDue = (): void => {
    const nowMs = performance.now();
    if (nowMs - lastCommitMs >= LETTING_GO_MS) lastRestMs = nowMs;
    if (nowMs - lastRestMs < LONGEST_HOLD_MS) return;
    sleep(LETTING_GO_MS);
    lastRestMs = performance.now();
  };

  const commit = (calls: readonly Call[], isOtherWaiting: () => boolean): readonly Outcome[] => {
    const outcomes: Outcome[] = [];
    const jobs: Job<unknown>[] = [];
    const positions: number[] = [];
    calls.forEach(([, operation, args], position) => {
      try {
        const job = jobOf(operations, operation, args);
        jobs.push({
          run() {
            noteProgress(health);
            return job.run();
          },
        });
        positions.push(position);
      } catch (error) {
        outcomes[position] = failed(asStoreError(error));
      }
    });
    restIfDue();
    const done = commitTogether(database, jobs, isOtherWaiting);
    done.forEach((outcome, index) => {
      outcomes[positions[index]!] = outcome;
    });
    const begun = positions[done.length] ?? calls.length;
    wal.noteCommitted(calls.slice(0, begun).reduce((rows, call) => rows + weightOf(call), 0));
    return outcomes.slice(0, begun);
  };

  const service: Service = {
    groupWeight: tuning.groupRows,
    patienceMs: Number.POSITIVE_INFINITY,
    weightOf,
    mayBeginLarge: () => guard.isLost() || !wal.isBehind(),
    answer(calls, isOtherWaiting) {
      const outcomes = guard.guarded(calls.length, () => commit(calls, isOtherWaiting));
      outcomes.forEach((outcome, position) => {
        if (outcome.kind === 'unavailable') noteFailed(health, true);
        else if (outcome.kind === 'done' && calls[position]![1] === 'ping') noteFailed(health, false);
      });
      for (const [, operation, args] of calls.slice(0, outcomes.length)) {
        if (operation === 'write') giveBackRows((args[0] as PackedUpload).rows);
      }
      lastCommitMs = performance.now();
      return outcomes;
    },
    betweenGroups() {
      if (!guard.isLost()) wal.keepInBounds();
    },
    // The last connection that closes the file copies the log into it and removes the log.
    async close() {
      await wal.close();
      guard.close();
      database.close();
    },
  };
  return withHealth(service, health);
}

type WriterOperations = ReturnType<typeof createWriteOperations> & { ping(): Job<unknown> };

function jobOf(operations: WriterOperations, operation: string, args: readonly unknown[]): Job<unknown> {
  const create = operations[operation as keyof WriterOperations] as (
    ...args: readonly unknown[]
  ) => Job<unknown>;
  return create(...args);
}

/** A row of more bytes than this takes as long as several. */
const BYTES_PER_ROW = 1024;

/** A dry run writes, too, before it undoes it. */
function weightOf([, operation, args]: Call): number {
  if (operation !== 'write') return 1;
  const { rowCount, bytes } = (args[0] as PackedUpload).rows;
  return Math.max(1, rowCount, Math.ceil(bytes.byteLength / BYTES_PER_ROW));
}

runThread(openWriter);
