// The benchmark runs from end to end and reports every claimed figure. The measured values mean nothing here. Beside other
// tests, a slow machine may leave a measurement without a response.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { claims } from '../../bench/figures.ts';
import type { Results } from '../../bench/report/results.ts';
import { isThorough } from '../../server/store/test-thoroughness.ts';

const main = new URL('../../bench/main.ts', import.meta.url).pathname;
const TIMEOUT_MS = 900_000;

/** The claims that need peers, which are not installed for a test. */
const ofPeers = ['toTextbookOnSqlite', 'toTextbookOnPostgres', 'toDirectus'];

function run(...args: string[]): Promise<{ stdout: string; stderr: string }> {
  return promisify(execFile)(process.execPath, [main, ...args], {
    timeout: TIMEOUT_MS,
  });
}

const skip = isThorough ? false : 'it takes minutes, and runs only with HEADGATE_TEST_ALL=1';

test('the smoke run reports every figure, in both files and on standard output', { skip }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-bench-test-'));
  try {
    const { stdout } = await run('--smoke', '--out', folder);
    assert.deepEqual((await readdir(folder)).sort(), ['smoke.json', 'smoke.md']);
    const results = JSON.parse(await readFile(join(folder, 'smoke.json'), 'utf8')) as Results;
    const expected = Object.keys(claims).filter((id) => !ofPeers.includes(id));
    assert.deepEqual(results.figures.map(({ id }) => id).sort(), expected.sort());
    for (const { id, values } of results.figures) {
      assert.ok(
        values.length > 0 && values.every((value) => value > 0),
        `${id} has the values ${values.join()}`,
      );
    }
    for (const { title } of results.comparisons) assert.ok(stdout.includes(title), `${title} is not shown`);
    assert.deepEqual(
      results.leftOut.map(({ contender }) => contender),
      ['textbook', 'directus', 'nocodb'],
    );
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('unknown options, and options that leave nothing to run, are refused with the usage', async () => {
  for (const args of [
    ['--fast'],
    ['--only', 'speed'],
    ['--rounds', '0'],
    ['--full', '--smoke'],
    ['--smoke', '--only', 'peers'],
  ]) {
    await assert.rejects(run(...args), (error: { code: number; stderr: string }) => {
      assert.equal(error.code, 2);
      assert.match(error.stderr, /--full/);
      return true;
    });
  }
});
