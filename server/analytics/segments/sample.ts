// Chooses a fixed share of all customers, in TypeScript and in SQL in the same way: by a hash of the salt and the
// customer's id.

import { createHash } from 'node:crypto';
import type { SqlParams } from './sql-params.ts';

/** The number of different hashes: the first eight hexadecimal digits of an MD5 are used. */
const HASHES = 2 ** 32;

/** Returns the customer's position from 0 to below 100. A sample of n percent consists of the positions below n. */
export function samplePosition(customerId: string, salt: string): number {
  const digits = createHash('md5').update(`${salt}:${customerId}`).digest('hex').slice(0, 8);
  return (Number.parseInt(digits, 16) * 100) / HASHES;
}

/** Returns SQL for the position. `customerId` is SQL for a UUID. */
export function samplePositionSql(customerId: string, salt: string, params: SqlParams): string {
  const hashed = `md5(${params.add(salt)}::VARCHAR || ':' || ${customerId}::VARCHAR)`;
  return `(('0x' || left(${hashed}, 8))::UINTEGER::DOUBLE * 100 / ${HASHES})`;
}
