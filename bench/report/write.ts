// Keeps the results of a run: for programs, for readers, and to look at. A new run of the same mode replaces the old.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { chart } from './chart.ts';
import { markdownReport } from './markdown.ts';
import { checkResults, type Results } from './results.ts';

/** Answers the files it wrote. Throws InvalidResults before it touches any. */
export async function writeResults(folder: string, results: Results): Promise<string[]> {
  checkResults(results);
  const { mode } = results;
  const beside = { chart: `${mode}.svg`, values: `${mode}.json` };
  const files: readonly (readonly [name: string, content: string])[] = [
    [beside.values, `${JSON.stringify(results, null, 2)}\n`],
    [`${mode}.md`, markdownReport(results, beside)],
    [beside.chart, chart(results)],
  ];
  await mkdir(folder, { recursive: true });
  return Promise.all(
    files.map(async ([name, content]) => {
      const path = join(folder, name);
      await writeFile(path, content);
      return path;
    }),
  );
}
