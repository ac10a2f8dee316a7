// The one place that knows how an answer lies in its table, and how an idempotency key is held while the
// request that it stands for is being carried out.

import { hash } from 'node:crypto';
import type { Memory, MemoryKey, Remembered, Tally } from '../store.ts';
import type { Run } from './connections.ts';

/** False when another transaction, in this or another process, holds the key. Ends with the transaction. */
export async function hold(run: Run, { organisation, path, key }: MemoryKey): Promise<boolean> {
  const digest = hash('sha256', JSON.stringify([organisation, path, key]), 'buffer');
  const [row] = await run({
    name: 'hold',
    text: 'SELECT pg_try_advisory_xact_lock($1::bigint)',
    values: [String(digest.readBigInt64BE())],
  });
  return row![0] === 't';
}

export async function recall(
  run: Run,
  { organisation, path, key }: MemoryKey,
  nowMs: number,
): Promise<Remembered | null> {
  const [row] = await run({
    name: 'recall',
    text: `SELECT fingerprint, answer, tallies FROM idempotency_answers
      WHERE organisation = $1 AND path = $2 AND key = $3 AND expires_at_ms > $4`,
    values: [organisation, path, key, nowMs],
  });
  if (row === undefined) return null;
  const [fingerprint, answer, tallies] = row as [string, string, string];
  const HEX_MARK = '\\x';
  return {
    fingerprint,
    answer: Buffer.from(answer.slice(HEX_MARK.length), 'hex'),
    tallies: JSON.parse(tallies) as Tally[],
  };
}

/** In the place of one that has expired, where there is one. */
export async function keep(run: Run, memory: Memory, tallies: readonly Tally[]): Promise<void> {
  await run({
    name: 'keep',
    text: `INSERT INTO idempotency_answers
        (organisation, path, key, fingerprint, answer, tallies, kept_at_ms, expires_at_ms)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
      ON CONFLICT (organisation, path, key) DO UPDATE SET
        fingerprint = excluded.fingerprint, answer = excluded.answer, tallies = excluded.tallies,
        kept_at_ms = excluded.kept_at_ms, expires_at_ms = excluded.expires_at_ms`,
    values: [
      memory.organisation,
      memory.path,
      memory.key,
      memory.fingerprint,
      Buffer.from(memory.answer),
      JSON.stringify(tallies),
      memory.keptAtMs,
      memory.expiresAtMs,
    ],
  });
}
