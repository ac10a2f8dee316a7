// The records of uploads as JSON. A run makes them once and keeps them in a folder of its own: every contender is sent the
// same ones, and making them takes longer than sending them. The processes that send them only read.

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

/** For this process and those that it starts. */
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
    // On disk at once, and not beside what is measured next.
    writeFileSync(`${path}.part`, text, { flush: true });
    renameSync(`${path}.part`, path);
  }
}

/** Each a JSON array. */
export function recordTexts(order: RecordsOrder): Buffer[] {
  return pathsOf(order).map((path) => readFileSync(path));
}

/** For contenders that take rows: the records of one upload after the other. */
export function* keptRecords(order: RecordsOrder): Generator<BenchRecord[]> {
  for (const path of pathsOf(order)) yield JSON.parse(readFileSync(path, 'utf8'));
}
