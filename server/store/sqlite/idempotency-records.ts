// Stores idempotency records in SQLite.

import type {
  IdempotencyRecord,
  IdempotencyRecordKey,
  IdempotencyStore,
  StoredResponse,
  Written,
} from '../idempotency-records.ts';
import type { Tally } from '../rows.ts';
import type { Prepare } from './statements.ts';
import { type Callers, nobodys } from './thread-operations.ts';

/**
 * The most records, and the most bytes of responses, that one call deletes. A response may be megabytes long, and other
 * writes wait for the call.
 */
const DELETED_AT_ONCE = 200;
const DELETED_BYTES_AT_ONCE = 2 * 1024 * 1024;
/** What a call counts as. Deleting a record adds about 11 KB to the log, as much as ten rows, because its key is random. */
const ROWS_PER_CALL = 10 * DELETED_AT_ONCE;

export function idempotencyLookUps(prepare: Prepare) {
  return {
    storedResponse({ organisation, path, key }: IdempotencyRecordKey, nowMs: number): StoredResponse | null {
      const row = prepare(
        `SELECT fingerprint, answer, tallies FROM idempotency_answers
          WHERE organisation = ? AND path = ? AND key = ? AND expires_at_ms > ?`,
      ).get(organisation, path, key, nowMs);
      if (row === undefined) return null;
      return {
        fingerprint: row.fingerprint as string,
        response: row.answer as Uint8Array,
        tallies: JSON.parse(row.tallies as string) as Tally[],
      };
    },
  };
}

export function idempotencyWrites(prepare: Prepare) {
  return {
    /** Deletes some expired records, oldest first. Returns true if more may be left; the caller then calls it again. */
    deleteExpiredResponses(nowMs: number): boolean {
      const expired = prepare(
        `SELECT rowid, length(answer) AS bytes FROM idempotency_answers
         WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ${DELETED_AT_ONCE}`,
      ).all(nowMs);
      const remove = prepare('DELETE FROM idempotency_answers WHERE rowid = ?');
      let bytes = 0;
      for (const [position, answer] of expired.entries()) {
        bytes += answer.bytes as number;
        if (position > 0 && bytes > DELETED_BYTES_AT_ONCE) return true;
        remove.run(answer.rowid!);
      }
      return expired.length === DELETED_AT_ONCE;
    },
  };
}

/**
 * Calls `write`, and stores the idempotency record with the tallies. If a response is already stored under the record's
 * key, returns that response and writes nothing.
 */
export function writeOnce(
  prepare: Prepare,
  record: IdempotencyRecord | null,
  write: () => readonly Tally[],
): Written {
  const stored = record && idempotencyLookUps(prepare).storedResponse(record, record.storedAtMs);
  if (stored !== null) return { kind: 'replay', stored };
  const tallies = write();
  if (record !== null) insert(prepare, record, tallies);
  return { kind: 'written', tallies, seq: null };
}

function insert(prepare: Prepare, record: IdempotencyRecord, tallies: readonly Tally[]): void {
  prepare(
    `INSERT OR REPLACE INTO idempotency_answers
      (organisation, path, key, fingerprint, answer, tallies, kept_at_ms, expires_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    record.organisation,
    record.path,
    record.key,
    record.fingerprint,
    record.response,
    JSON.stringify(tallies),
    record.storedAtMs,
    record.expiresAtMs,
  );
}

export function idempotencyStore({ writer, reader }: Callers): IdempotencyStore {
  return {
    storedResponse: ({ organisation, path, key }, nowMs) =>
      reader.call('storedResponse', [{ organisation, path, key }, nowMs], { organisation }),
    async deleteExpiredResponses(nowMs) {
      const options = { ...nobodys, rows: ROWS_PER_CALL };
      while (await writer.call('deleteExpiredResponses', [nowMs], options));
    },
  };
}

/**
 * Returns the record with a copy of its response. A response that is a view of a larger buffer would otherwise take the
 * whole buffer to the other thread.
 */
export function packIdempotencyRecord(record: IdempotencyRecord | null): IdempotencyRecord | null {
  return record === null ? null : { ...record, response: new Uint8Array(record.response) };
}

export function responseBytes(record: IdempotencyRecord | null): number {
  return record?.response.length ?? 0;
}
