// The SQL for the table of API keys, which is the same in every store.

import type { NewApiKey } from './keys.ts';

/** Selects keys together with the `org_id` of their organisation. */
export const keySql = `SELECT key_id, organisation, org_id, secret_hash, api_keys.name, scopes,
    api_keys.created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, replaced_by
  FROM api_keys JOIN organisations USING (organisation)`;

/**
 * Returns the statement that inserts a key. `parameter` returns the SQL of the parameter with the given number, counted
 * from 1. `keyValues` returns the values of the parameters.
 */
export function insertKeySql(parameter: (number: number) => string): string {
  return `INSERT INTO api_keys
      (key_id, organisation, secret_hash, name, scopes,
       created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, replaced_by)
    VALUES (${Array.from({ length: 10 }, (_, at) => parameter(at + 1)).join(', ')})`;
}

export function keyValues(key: NewApiKey): (string | number | null)[] {
  return [
    key.keyId,
    key.organisation,
    key.secretHash,
    key.name,
    JSON.stringify(key.scopes),
    key.createdAtMs,
    key.expiresAtMs,
    key.revokedAtMs,
    key.lastUsedAtMs,
    key.replacedBy,
  ];
}
