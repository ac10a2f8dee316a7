// Writes the results of a run as JSON and Markdown. They replace the results of an earlier run in the same mode.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { markdownReport } from './markdown.ts';
import { checkResults, type Results } from './results.ts';

/** Returns the paths of the written files. If the results are invalid, throws InvalidResults and writes nothing. */
export async function writeResults(folder: string, results: Results): Promise<string[]> {
  checkResults(results);
  const values = join(folder, `${results.mode}.json`);
  const report = join(folder, `${results.mode}.md`);
  await mkdir(folder, { recursive: true });
  await writeFile(values, `${JSON.stringify(results, null, 2)}\n`);
  await writeFile(report, markdownReport(results));
  return [values, report];
}
