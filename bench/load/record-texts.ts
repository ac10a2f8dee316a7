// The records of an upload as JSON. A run makes them once and keeps them in a folder of its own: every contender is sent
// the same ones, and making them takes longer than sending them.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { recordsOf, type WorkloadName } from '../workloads.ts';

const FOLDER_VARIABLE = 'HEADGATE_BENCH_RECORDS';

/** For this process and those that it starts. */
export function keepRecordTextsIn(folder: string): void {
  mkdirSync(folder);
  process.env[FOLDER_VARIABLE] = folder;
}

/** Upload number `upload` of a seed, as a JSON array. */
export function recordsText(workload: WorkloadName, seed: number, upload: number, count: number): Buffer {
  const make = (): Buffer => Buffer.from(JSON.stringify(recordsOf(workload, seed, upload, count)));
  const folder = process.env[FOLDER_VARIABLE];
  if (folder === undefined) return make();
  const path = join(folder, `${workload}-${seed}-${upload}-${count}.json`);
  if (existsSync(path)) return readFileSync(path);
  const text = make();
  // On disk at once, and not beside what is measured next.
  writeFileSync(path, text, { flush: true });
  return text;
}
