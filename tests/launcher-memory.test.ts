// The first line of the launcher, which sets variables and V8's options.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { nodeFlags } from './harness/headgate.ts';

const MEGABYTE = 1024 * 1024;

/** Prints the size of the space at the start of the main thread, and of a thread that it starts. */
const script = `
  import { getHeapSpaceStatistics } from 'node:v8';
  import { Worker } from 'node:worker_threads';
  import { prepareThreadMemory } from ${JSON.stringify(new URL('../server/thread-memory.ts', import.meta.url).href)};
  const ofMain = getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size;
  prepareThreadMemory();
  const look = \`
    import { getHeapSpaceStatistics } from 'node:v8';
    import { parentPort } from 'node:worker_threads';
    const space = getHeapSpaceStatistics().find((space) => space.space_name === 'new_space');
    parentPort.postMessage(space.space_size);
  \`;
  new Worker(look, { eval: true }).on('message', (ofThread) => console.log(JSON.stringify({ ofMain, ofThread })));
`;

async function spaces(flags: readonly string[]): Promise<{ ofMain: number; ofThread: number }> {
  const args = [...flags, '--input-type=module', '-e', script];
  return JSON.parse((await promisify(execFile)(process.execPath, args)).stdout);
}

test('the V8 option of the launcher applies to the main thread only', async () => {
  const launched = await spaces(nodeFlags);
  const usual = await spaces([]);
  assert.equal(launched.ofMain, 8 * MEGABYTE);
  assert.ok(usual.ofMain < launched.ofMain, `${usual.ofMain} without the launcher`);
  assert.equal(launched.ofThread, usual.ofThread);
});

test('the first line of the launcher is read completely by older versions of Linux', () => {
  const launcher = new URL('../server/bin/headgate.js', import.meta.url);
  const [line] = readFileSync(launcher, 'utf8').split('\n', 1);
  // Before version 5.1, Linux reads 127 characters.
  assert.ok(line!.length <= 127, `it has ${line!.length} characters`);
});
