// The one place that knows how a kept answer lies in its table, for the reader and the writer.

import type { SQLOutputValue } from 'node:sqlite';
import type { Remembered, Tally } from '../store.ts';

/** Parameters: organisation, path, key, and the moment by which it must not have expired. */
export const keptAnswerSql = `SELECT fingerprint, answer, tallies FROM idempotency_answers
  WHERE organisation = ? AND path = ? AND key = ? AND expires_at_ms > ?`;

export function rememberedOf(row: Record<string, SQLOutputValue> | undefined): Remembered | null {
  if (row === undefined) return null;
  return {
    fingerprint: row.fingerprint as string,
    answer: row.answer as Uint8Array,
    tallies: JSON.parse(row.tallies as string) as Tally[],
  };
}
