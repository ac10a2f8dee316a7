// The first line of the launcher, which sets variables and V8's options.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { nodeFlags } from './harness/headgate.ts';

const MEGABYTE = 1024 * 1024;

/**
 * Prints the size of the space for new objects and the limit of the heap, at the start of the main thread and of a thread
 * that it starts.
 */
const script = `
  import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';
  import { Worker } from 'node:worker_threads';
  import { prepareThreadMemory } from ${JSON.stringify(new URL('../server/thread-memory.ts', import.meta.url).href)};
  const { heap_size_limit: limitOfMain } = getHeapStatistics();
  const ofMain = getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size;
  prepareThreadMemory();
  const look = \`
    import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';
    import { parentPort } from 'node:worker_threads';
    const space = getHeapSpaceStatistics().find((space) => space.space_name === 'new_space');
    parentPort.postMessage({ ofThread: space.space_size, limitOfThread: getHeapStatistics().heap_size_limit });
  \`;
  new Worker(look, { eval: true }).on('message', (found) =>
    console.log(JSON.stringify({ ofMain, limitOfMain, ...found })),
  );
`;

interface Spaces {
  readonly ofMain: number;
  readonly limitOfMain: number;
  readonly ofThread: number;
  readonly limitOfThread: number;
}

async function spaces(flags: readonly string[]): Promise<Spaces> {
  const args = [...flags, '--input-type=module', '-e', script];
  return JSON.parse((await promisify(execFile)(process.execPath, args)).stdout);
}

test('the V8 options of the launcher apply to the main thread only', async () => {
  const launched = await spaces(nodeFlags);
  const usual = await spaces([]);
  assert.equal(launched.ofMain, 8 * MEGABYTE);
  assert.ok(usual.ofMain < launched.ofMain, `${usual.ofMain} without the launcher`);
  assert.equal(launched.ofThread, usual.ofThread);
  assert.ok(launched.limitOfMain < 1100 * MEGABYTE, `${launched.limitOfMain}`);
  assert.equal(launched.limitOfThread, usual.limitOfThread);
});

test('the first line of the launcher is read completely by older versions of Linux', () => {
  const launcher = new URL('../server/bin/headgate.js', import.meta.url);
  const [line] = readFileSync(launcher, 'utf8').split('\n', 1);
  // Before version 5.1, Linux reads 127 characters.
  assert.ok(line!.length <= 127, `it has ${line!.length} characters`);
});
