// Stores API keys in SQLite.

import type { SQLOutputValue } from 'node:sqlite';
import { insertKeySql, keySql, keyValues } from '../key-table.ts';
import type { ApiKey, KeyStore, NewApiKey } from '../keys.ts';
import type { OrganisationNumber } from '../rows.ts';
import type { Prepare } from './statements.ts';
import { type Callers, nobodys } from './thread-operations.ts';

/** The most keys that one call marks as used. Other writes do not have to wait for all of them. */
const KEYS_NOTED_AT_ONCE = 500;

export function keyLookUps(prepare: Prepare) {
  return {
    findKey(keyId: string): ApiKey | null {
      const row = prepare(`${keySql} WHERE key_id = ?`).get(keyId);
      return row === undefined ? null : apiKeyOf(row);
    },

    keysOf(organisation: OrganisationNumber): readonly ApiKey[] {
      return prepare(`${keySql} WHERE organisation = ? ORDER BY api_keys.created_at_ms, key_id`)
        .all(organisation)
        .map(apiKeyOf);
    },
  };
}

export function keyWrites(prepare: Prepare) {
  const addKey = (key: NewApiKey): void => {
    prepare(insertKeySql(() => '?')).run(...keyValues(key));
  };

  return {
    addKey,

    replaceKey(keyId: string, endsAtMs: number, successor: NewApiKey): boolean {
      const found = prepare('SELECT replaced_by FROM api_keys WHERE key_id = ?').get(keyId);
      if (found === undefined) throw new Error(`the key ${keyId}, which is to be replaced, does not exist`);
      if (found.replaced_by !== null) return false;
      prepare(
        `UPDATE api_keys SET expires_at_ms = min(?1, coalesce(expires_at_ms, ?1)), replaced_by = ?2
         WHERE key_id = ?3`,
      ).run(endsAtMs, successor.keyId, keyId);
      addKey(successor);
      return true;
    },

    revokeKey(keyId: string, revokedAtMs: number): void {
      const revoke = prepare(
        'UPDATE api_keys SET revoked_at_ms = ? WHERE key_id = ? AND revoked_at_ms IS NULL',
      );
      revoke.run(revokedAtMs, keyId);
    },

    noteKeysUsed(lastUsedAtMs: ReadonlyMap<string, number>): void {
      const note = prepare(
        `UPDATE api_keys SET last_used_at_ms = ?1
         WHERE key_id = ?2 AND (last_used_at_ms IS NULL OR last_used_at_ms < ?1)`,
      );
      for (const [keyId, usedAtMs] of lastUsedAtMs) note.run(usedAtMs, keyId);
    },
  };
}

export function keyStore({ writer, reader }: Callers): KeyStore {
  return {
    addKey: (...args) => writer.call('addKey', args, nobodys),
    findKey: (keyId) => reader.call('findKey', [keyId], nobodys),
    keysOf: (organisation) => reader.call('keysOf', [organisation], { organisation }),
    replaceKey: (...args) => writer.call('replaceKey', args, nobodys),
    revokeKey: (...args) => writer.call('revokeKey', args, nobodys),
    async noteKeysUsed(lastUsedAtMs) {
      const uses = [...lastUsedAtMs];
      for (let first = 0; first < uses.length; first += KEYS_NOTED_AT_ONCE) {
        const some = new Map(uses.slice(first, first + KEYS_NOTED_AT_ONCE));
        await writer.call('noteKeysUsed', [some], nobodys);
      }
    },
  };
}

function apiKeyOf(row: Record<string, SQLOutputValue>): ApiKey {
  return {
    keyId: row.key_id as string,
    organisation: row.organisation as number,
    orgId: row.org_id as string,
    secretHash: row.secret_hash as string,
    name: row.name as string | null,
    scopes: JSON.parse(row.scopes as string) as string[],
    createdAtMs: row.created_at_ms as number,
    expiresAtMs: row.expires_at_ms as number | null,
    revokedAtMs: row.revoked_at_ms as number | null,
    lastUsedAtMs: row.last_used_at_ms as number | null,
    replacedBy: row.replaced_by as string | null,
  };
}
