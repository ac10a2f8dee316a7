import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { takeProcessLock } from './process-lock.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

test('a lock is held until it is released, even if nobody keeps the function that releases it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-lock-'));
  const [kept, released] = [join(folder, 'kept.lock'), join(folder, 'released.lock')];
  try {
    assert.notEqual(takeProcessLock(kept, 0), null);
    takeProcessLock(released, 0)!();
    for (let time = 0; time < 3; time++) {
      collectGarbage();
      await sleep(10);
    }
    assert.equal(takeProcessLock(kept, 0), null);
    const release = takeProcessLock(released, 0);
    assert.notEqual(release, null);
    release!();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
