import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { InvalidResults } from './results.ts';
import { figure, ordinary } from './testing/sample-results.ts';
import { writeResults } from './write.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-report-'));
});
after(() => rm(folder, { recursive: true }));

test('two files named after the mode are written, and a missing folder is created', async () => {
  const into = join(folder, 'made', 'here');
  const written = await writeResults(into, ordinary);
  assert.deepEqual(
    written,
    ['full.json', 'full.md'].map((name) => join(into, name)),
  );
  assert.deepEqual(JSON.parse(await readFile(join(into, 'full.json'), 'utf8')), ordinary);
  assert.match(await readFile(join(into, 'full.md'), 'utf8'), /\(full\.json\)/);
});

test('a new run replaces the results of its own mode, and of no other mode', async () => {
  const into = join(folder, 'again');
  await writeResults(into, ordinary);
  await writeResults(into, { ...ordinary, mode: 'quick' });
  await writeResults(into, { ...ordinary, figures: [], comparisons: [] });
  assert.deepEqual((await readdir(into)).sort(), ['full.json', 'full.md', 'quick.json', 'quick.md']);
  const text = (name: string): Promise<string> => readFile(join(into, name), 'utf8');
  assert.doesNotMatch(await text('full.md'), /Directus/);
  assert.match(await text('quick.md'), /Directus/);
});

test('invalid results are refused, and earlier results are kept', async () => {
  const into = join(folder, 'kept');
  await writeResults(into, ordinary);
  const before = await readFile(join(into, 'full.json'), 'utf8');
  const broken = { ...ordinary, figures: [figure([Number.NaN], { atLeast: 1 })] };
  await assert.rejects(writeResults(into, broken), InvalidResults);
  assert.equal(await readFile(join(into, 'full.json'), 'utf8'), before);
});
