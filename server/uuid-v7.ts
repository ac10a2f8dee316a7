// UUIDv7: ids that rise with time, also within one millisecond of this thread, so that sorting by id sorts
// by age and new rows land at the end of an index.

import { randomBytes } from 'node:crypto';

const COUNTER_LIMIT = 0x1000;
const POOL_BYTES = 4096;
const RANDOM_BYTES_PER_ID = 8;

let pool = randomBytes(POOL_BYTES);
let poolUsedBytes = 0;
let lastMs = 0;
let counter = 0;

export function uuidV7(nowMs: number = Date.now()): string {
  if (nowMs > lastMs) {
    lastMs = nowMs;
    counter = 0;
  } else if (++counter === COUNTER_LIMIT) {
    // More than 4096 in a millisecond, or a clock set back: borrow from the next one rather than go back.
    lastMs++;
    counter = 0;
  }
  if (poolUsedBytes + RANDOM_BYTES_PER_ID > POOL_BYTES) {
    pool = randomBytes(POOL_BYTES);
    poolUsedBytes = 0;
  }
  const variant = 0x80 | (pool[poolUsedBytes]! & 0x3f);
  const random = pool.toString('hex', poolUsedBytes + 1, poolUsedBytes + RANDOM_BYTES_PER_ID);
  poolUsedBytes += RANDOM_BYTES_PER_ID;
  const time = lastMs.toString(16).padStart(12, '0');
  const count = counter.toString(16).padStart(3, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${count}-${variant.toString(16)}${random.slice(0, 2)}-${random.slice(2)}`;
}
