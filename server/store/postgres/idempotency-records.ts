// Stores idempotency records in PostgreSQL.

import { hash } from 'node:crypto';
import type {
  IdempotencyRecord,
  IdempotencyRecordKey,
  IdempotencyStore,
  StoredResponse,
  Written,
} from '../idempotency-records.ts';
import type { Tally } from '../rows.ts';
import { bytesOfHex } from './codecs.ts';
import { callsOf, upkeep } from './connection-slots.ts';
import type { Connections, Run } from './connections.ts';

/** How many records one statement deletes. Few, because a compressed response can have two megabytes. */
const DELETED_AT_ONCE = 20;

export function idempotencyStore(connections: Connections): IdempotencyStore {
  return {
    storedResponse: (key, nowMs) => findResponse(connections.for(callsOf(key.organisation)).run, key, nowMs),

    async deleteExpiredResponses(nowMs) {
      const { run } = connections.for(upkeep);
      for (;;) {
        const deleted = await run({
          text: `DELETE FROM idempotency_answers WHERE (organisation, path, key) IN
              (SELECT organisation, path, key FROM idempotency_answers
                WHERE expires_at_ms <= $1 ORDER BY expires_at_ms LIMIT ${DELETED_AT_ONCE})
              AND expires_at_ms <= $1
            RETURNING 1`,
          values: [nowMs],
        });
        if (deleted.length < DELETED_AT_ONCE) return;
      }
    },
  };
}

/**
 * Calls `write`, and stores the idempotency record with the tallies. If a response is already stored under the record's
 * key, returns that response and writes nothing. Must run in a transaction, so that the rows and the record are
 * committed together.
 */
export async function writeOnce(
  run: Run,
  record: IdempotencyRecord | null,
  write: () => Promise<readonly Tally[]>,
): Promise<Written> {
  if (record === null) return { kind: 'written', tallies: await write(), seq: null };
  if (!(await lock(run, record))) return { kind: 'running' };
  const stored = await findResponse(run, record, record.storedAtMs);
  if (stored !== null) return { kind: 'replay', stored };
  const tallies = await write();
  await insert(run, record, tallies);
  return { kind: 'written', tallies, seq: null };
}

/**
 * Locks the key until the transaction ends. Returns false if another transaction, in this or another process, holds the
 * lock.
 */
async function lock(run: Run, { organisation, path, key }: IdempotencyRecordKey): Promise<boolean> {
  const digest = hash('sha256', JSON.stringify([organisation, path, key]), 'buffer');
  const [row] = await run({
    name: 'lock',
    text: 'SELECT pg_try_advisory_xact_lock($1::bigint)',
    values: [String(digest.readBigInt64BE())],
  });
  return row![0] === 't';
}

async function findResponse(
  run: Run,
  { organisation, path, key }: IdempotencyRecordKey,
  nowMs: number,
): Promise<StoredResponse | null> {
  const [row] = await run({
    name: 'find response',
    text: `SELECT fingerprint, answer, tallies FROM idempotency_answers
      WHERE organisation = $1 AND path = $2 AND key = $3 AND expires_at_ms > $4`,
    values: [organisation, path, key, nowMs],
  });
  if (row === undefined) return null;
  const [fingerprint, answer, tallies] = row as [string, string, string];
  return {
    fingerprint,
    response: bytesOfHex(answer),
    tallies: JSON.parse(tallies) as Tally[],
  };
}

/** Stores the record. A record with the same key has expired and is replaced. */
async function insert(run: Run, record: IdempotencyRecord, tallies: readonly Tally[]): Promise<void> {
  const { organisation, path, key, fingerprint, storedAtMs, expiresAtMs } = record;
  const answer = Buffer.from(record.response);
  await run({
    name: 'insert response',
    text: `INSERT INTO idempotency_answers
        (organisation, path, key, fingerprint, answer, tallies, kept_at_ms, expires_at_ms)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
      ON CONFLICT (organisation, path, key) DO UPDATE SET
        fingerprint = excluded.fingerprint, answer = excluded.answer, tallies = excluded.tallies,
        kept_at_ms = excluded.kept_at_ms, expires_at_ms = excluded.expires_at_ms`,
    values: [organisation, path, key, fingerprint, answer, JSON.stringify(tallies), storedAtMs, expiresAtMs],
  });
}
