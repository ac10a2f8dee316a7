// `headgate backup`: copies a SQLite database to one file, from which it can be restored.

import { Failure } from '../failure.ts';
import { readSetting } from '../settings.ts';
import { readDatabaseLocation } from '../store/database-location.ts';
import type { BackupProgress, BackupSummary, RunningBackup } from '../store/sqlite/backup.ts';
import type { Call } from './call.ts';
import { type ExitCode, exitCodes, misused, printJson } from './io.ts';
import { progressBar, progressLine } from './progress.ts';
import { onStopSignal } from './stop-signal.ts';

const MIB = 1024 * 1024;

export async function backup({ io, args, option, isOn }: Call): Promise<ExitCode> {
  const database = readSetting('database', io.env, { database: option('database') });
  if (database instanceof Failure) return misused(io, database);
  const file = args[0]!;
  if (file === '') return misused(io, 'FILE is empty; name the backup to make');
  const place = readDatabaseLocation(database);
  if (place instanceof Failure) return misused(io, place);
  if (place.kind === 'postgres') {
    return misused(
      io,
      'the database is PostgreSQL; back it up with pg_dump --format=custom --file=FILE; ' +
        'docs/backup.md describes backup and restore',
    );
  }
  const { startBackup } = await import('../store/sqlite/backup.ts');
  const startedAtMs = performance.now();
  const line = progressLine(io);
  // Progress is shown only on a terminal. Without one, as in a cron job, the final line is enough.
  const onProgress = (progress: BackupProgress): void => {
    if (io.isTerminal) line.show(sentence(progress));
  };
  let running: RunningBackup | undefined;
  // The listener is set before the first file is created, so that a signal never leaves a file behind.
  const stopListening = onStopSignal(() => {
    line.end();
    running?.abandon();
    io.err('headgate: stopped before the backup was complete; the partial backup is deleted');
  });
  let summary: BackupSummary;
  try {
    running = startBackup(place.path, file, isOn('force'), onProgress);
    summary = await running.ended;
  } finally {
    stopListening();
    line.end();
  }
  const elapsedMs = Math.round(performance.now() - startedAtMs);
  if (isOn('json')) return printJson(io, asJson(file, summary, elapsedMs));
  io.out(resultOf(file, summary, elapsedMs));
  return exitCodes.done;
}

function sentence({ kind, doneBytes, totalBytes }: BackupProgress): string {
  if (kind === 'checking') return `checking ${mebibytes(totalBytes)} MiB`;
  const share = totalBytes === 0 ? 1 : doneBytes / totalBytes;
  return `copying  ${progressBar(share)}  ${Math.floor(share * 100)} %  ${mebibytes(doneBytes)} of ${mebibytes(totalBytes)} MiB`;
}

function resultOf(file: string, summary: BackupSummary, elapsedMs: number): string {
  const { bytes, organisations, records, interactions } = summary;
  return (
    `Backed up ${counted(organisations, 'organisation')}, ${counted(records, 'record')} and ` +
    `${counted(interactions, 'interaction')} to ${file}: ${mebibytes(bytes)} MiB in ` +
    `${(elapsedMs / 1000).toFixed(1)} s, and the integrity check has passed.`
  );
}

function asJson(file: string, summary: BackupSummary, elapsedMs: number): object {
  const { bytes, schemaVersion, organisations, records, interactions } = summary;
  return {
    file,
    bytes,
    duration_ms: elapsedMs,
    schema_version: schemaVersion,
    organisations,
    records,
    interactions,
  };
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function mebibytes(bytes: number): string {
  return (bytes / MIB).toFixed(1);
}
