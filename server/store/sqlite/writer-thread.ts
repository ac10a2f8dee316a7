// The thread that runs all writes: it has the store's only writing connection.

import { FileWatch } from './file-identity.ts';
import { guardFiles } from './file-loss-guard.ts';
import { commitTogether, type Job } from './group-commit.ts';
import { sleep } from './lock-waiting.ts';
import { SCHEMA_VERSION } from './migrations.ts';
import { giveBackRows } from './packed-rows.ts';
import type { PackedUpload } from './records.ts';
import { keepStatistics } from './statistics.ts';
import type { CallResult, ThreadCall } from './thread-calls.ts';
import { hasFailed, noteFailed, noteProgress, withHealth } from './thread-health.ts';
import { runThread, type ThreadService, type ThreadSetup } from './thread-loop.ts';
import { createWrites } from './thread-operations.ts';
import { keepWal } from './wal.ts';
import { openForWriting } from './writing-connection.ts';

/**
 * A server that commits without pause releases the database after LONGEST_HOLD_MS, for LETTING_GO_MS, so that other
 * processes can use it.
 */
const LONGEST_HOLD_MS = 250;
const LETTING_GO_MS = 4;

function openWriter(setup: ThreadSetup, reportTrouble: (trouble: string) => void): ThreadService {
  const { path, tuning, files, health } = setup;
  const watch = new FileWatch(files);
  const database = watch.open(() => openForWriting(path));
  const wal = keepWal(database, files, tuning, reportTrouble);
  const guard = guardFiles(watch, wal, reportTrouble);
  const statistics = keepStatistics(database, reportTrouble);
  let lastRestMs = performance.now();
  let lastCommitMs = 0;

  const { writes, ledger } = createWrites(database);
  const operations: Readonly<Record<string, (...args: readonly never[]) => unknown>> = {
    ...writes,
    // After a failure, a ping writes, because only a write that reaches the disk proves that the store can serve again.
    ping: () => hasFailed(health) && database.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`),
  };

  const restIfDue = (): void => {
    const nowMs = performance.now();
    if (nowMs - lastCommitMs >= LETTING_GO_MS) lastRestMs = nowMs;
    if (nowMs - lastRestMs < LONGEST_HOLD_MS) return;
    sleep(LETTING_GO_MS);
    lastRestMs = performance.now();
  };

  const jobOf =
    ([, operation, args]: ThreadCall): Job =>
    () => {
      noteProgress(health);
      return operations[operation]!(...(args as readonly never[]));
    };

  const commit = (calls: readonly ThreadCall[], isOtherWaiting: () => boolean): readonly CallResult[] => {
    restIfDue();
    const outcomes = commitTogether(database, calls.map(jobOf), isOtherWaiting, ledger);
    const rows = calls.slice(0, outcomes.length).reduce((sum, call) => sum + call[4], 0);
    wal.noteCommitted(rows);
    statistics.noteCommitted(rows);
    return outcomes;
  };

  const service: ThreadService = {
    groupRows: tuning.groupRows,
    patienceMs: Number.POSITIVE_INFINITY,
    mayBeginLarge: () => guard.isLost() || !wal.isBehind(),
    run(calls, isOtherWaiting) {
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
      if (guard.isLost()) return;
      wal.keepInBounds();
      statistics.keepUpToDate();
    },
    // Closes the checkpointer's connection before the writer's: the last connection to close copies the log into the
    // database file and deletes the log.
    async close() {
      await wal.close();
      guard.close();
      database.close();
    },
  };
  return withHealth(service, health);
}

runThread(openWriter);
