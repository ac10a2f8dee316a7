// Makes ids of the kind UUIDv7. The ids increase with time. Ids from the same thread increase within a millisecond too.
// So sorting by id sorts by age, and new rows are added at the end of an index.

import { randomBytes } from 'node:crypto';

const COUNTER_LIMIT = 0x1000;
const POOL_BYTES = 4096;
const RANDOM_BYTES_PER_ID = 8;

/** The two hexadecimal digits of every byte. */
const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

let pool = randomBytes(POOL_BYTES);
let poolUsedBytes = 0;
let lastMs = 0;
let timePart = '';
let counter = 0;

export function uuidV7(nowMs: number = Date.now()): string {
  if (nowMs > lastMs) moveTo(nowMs);
  // If the clock was set back, ids continue in the last millisecond. After 4096 ids in one millisecond, the next
  // millisecond is used early.
  else if (++counter === COUNTER_LIMIT) moveTo(lastMs + 1);
  if (poolUsedBytes + RANDOM_BYTES_PER_ID > POOL_BYTES) {
    pool = randomBytes(POOL_BYTES);
    poolUsedBytes = 0;
  }
  const at = poolUsedBytes;
  poolUsedBytes += RANDOM_BYTES_PER_ID;
  let id = `${timePart}${(counter >> 8).toString(16)}${hex[counter & 0xff]!}-`;
  id += `${hex[0x80 | (pool[at]! & 0x3f)]!}${hex[pool[at + 1]!]!}-`;
  for (let byte = 2; byte < RANDOM_BYTES_PER_ID; byte++) id += hex[pool[at + byte]!]!;
  return id;
}

function moveTo(ms: number): void {
  lastMs = ms;
  counter = 0;
  const time = ms.toString(16).padStart(12, '0');
  timePart = `${time.slice(0, 8)}-${time.slice(8)}-7`;
}
