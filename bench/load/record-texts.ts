// Keeps the records of uploads as JSON files. A run writes each file once, because generating records takes longer than
// sending them. Every contender gets the same records, and the sending processes only read the files.

import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BenchRecord, recordsOf, type WorkloadName } from '../workloads.ts';

const FOLDER_VARIABLE = 'BENCH_RECORD_TEXTS';

export interface RecordsOrder {
  readonly workload: WorkloadName;
  readonly seed: number;
  readonly uploads: number;
  readonly recordsPerUpload: number;
}

/** Sets the folder of the files, for this process and its child processes. */
export function keepRecordTextsIn(folder: string): void {
  mkdirSync(folder);
  process.env[FOLDER_VARIABLE] = folder;
}

function pathsOf({ workload, seed, uploads, recordsPerUpload }: RecordsOrder): string[] {
  const folder = process.env[FOLDER_VARIABLE];
  if (folder === undefined) throw new Error('no folder was named for the texts of records');
  return Array.from({ length: uploads }, (_, upload) =>
    join(folder, `${workload}-${seed}-${upload}-${recordsPerUpload}.json`),
  );
}

export function makeRecordTexts(order: RecordsOrder): void {
  const { workload, seed, recordsPerUpload } = order;
  for (const [upload, path] of pathsOf(order).entries()) {
    if (existsSync(path)) continue;
    const text = JSON.stringify(recordsOf(workload, seed, upload, recordsPerUpload));
    // Flushes the file now; if the kernel wrote it later, that would disturb the next measurement.
    writeFileSync(`${path}.part`, text, { flush: true });
    renameSync(`${path}.part`, path);
  }
}

/** Returns one JSON array per upload. */
export function recordTexts(order: RecordsOrder): Buffer[] {
  return pathsOf(order).map((path) => readFileSync(path));
}

/** Yields the records of each upload, for contenders that need rows. */
export function* keptRecords(order: RecordsOrder): Generator<BenchRecord[]> {
  for (const path of pathsOf(order)) yield JSON.parse(readFileSync(path, 'utf8'));
}
