// Stores API keys in PostgreSQL.

import { insertKeySql, keySql, keyValues } from '../key-table.ts';
import type { ApiKey, KeyStore, NewApiKey } from '../keys.ts';
import { knownKeys, otherKeys, unknownKeys, upkeep } from './connection-slots.ts';
import type { Connections, Run, TextRow } from './connections.ts';

export function keyStore(connections: Connections): KeyStore {
  const { run, transaction } = connections.for(otherKeys);
  const { run: findKnown } = connections.for(knownKeys);
  const { run: findUnknown } = connections.for(unknownKeys);
  const forUpkeep = connections.for(upkeep);
  return {
    addKey: (key) => insertKey(run, key),

    async findKey(keyId, isKnown = false) {
      const text = `${keySql} WHERE key_id = $1`;
      const find = isKnown ? findKnown : findUnknown;
      const [row] = await find({ name: 'find key', text, values: [keyId] });
      return row === undefined ? null : apiKeyOf(row);
    },

    async keysOf(organisation) {
      const text = `${keySql} WHERE organisation = $1 ORDER BY api_keys.created_at_ms, key_id COLLATE "C"`;
      return (await run({ name: 'keys of', text, values: [organisation] })).map(apiKeyOf);
    },

    replaceKey: (keyId, endsAtMs, successor) =>
      transaction(async ({ run: runInside }) => {
        const replaced = await runInside({
          // LEAST ignores nulls. If the statement has waited for a concurrent one, PostgreSQL checks the condition
          // again on the updated row.
          text: `UPDATE api_keys SET expires_at_ms = LEAST($1::bigint, expires_at_ms), replaced_by = $2
            WHERE key_id = $3 AND replaced_by IS NULL RETURNING key_id`,
          values: [endsAtMs, successor.keyId, keyId],
        });
        if (replaced.length === 0) {
          const text = 'SELECT key_id FROM api_keys WHERE key_id = $1';
          const known = await runInside({ text, values: [keyId] });
          if (known.length === 0)
            throw new Error(`the key ${keyId}, which is to be replaced, does not exist`);
          return false;
        }
        await insertKey(runInside, successor);
        return true;
      }),

    async revokeKey(keyId, revokedAtMs) {
      await run({
        text: 'UPDATE api_keys SET revoked_at_ms = $1 WHERE key_id = $2 AND revoked_at_ms IS NULL',
        values: [revokedAtMs, keyId],
      });
    },

    async noteKeysUsed(lastUsedAtMs) {
      await forUpkeep.run({
        name: 'note keys used',
        text: `UPDATE api_keys SET last_used_at_ms = noted.used_at_ms
          FROM unnest($1::text[], $2::bigint[]) AS noted (key_id, used_at_ms)
          WHERE api_keys.key_id = noted.key_id
            AND (last_used_at_ms IS NULL OR last_used_at_ms < noted.used_at_ms)`,
        values: [[...lastUsedAtMs.keys()], [...lastUsedAtMs.values()]],
      });
    },
  };
}

async function insertKey(run: Run, key: NewApiKey): Promise<void> {
  await run({ text: insertKeySql((number) => `$${number}`), values: keyValues(key) });
}

function apiKeyOf(row: TextRow): ApiKey {
  const [keyId, organisation, orgId, secretHash, name, scopes, createdAtMs, ...others] = row as [
    string,
    string,
    string,
    string,
    string | null,
    string,
    string,
    ...[string | null, string | null, string | null, string | null],
  ];
  const [expiresAt, revokedAt, lastUsedAt, replacedBy] = others;
  return {
    keyId,
    organisation: Number(organisation),
    orgId,
    secretHash,
    name,
    scopes: JSON.parse(scopes) as string[],
    createdAtMs: Number(createdAtMs),
    expiresAtMs: numberOrNull(expiresAt),
    revokedAtMs: numberOrNull(revokedAt),
    lastUsedAtMs: numberOrNull(lastUsedAt),
    replacedBy,
  };
}

function numberOrNull(text: string | null): number | null {
  return text === null ? null : Number(text);
}
