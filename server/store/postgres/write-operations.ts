// Everything that changes the database.

import type {
  ApiKey,
  InteractionWrite,
  Memory,
  Organisation,
  Store,
  Tally,
  Upload,
  Written,
} from '../store.ts';
import { recordTable, type Tables } from '../tables.ts';
import type { Connections, Run, Session } from './connections.ts';
import { groupWrites } from './group-writes.ts';
import { callsOf, mixedGroups, upkeep, vital } from './places.ts';
import { hold, keep, recall } from './remembered.ts';
import { areWorthCopying, copyIfNew, type Fate, type OwnedRow, upsert } from './upsert.ts';

type WriteOperations = Pick<
  Store,
  | 'createOrganisation'
  | 'addKey'
  | 'replaceKey'
  | 'revokeKey'
  | 'noteKeysUsed'
  | 'write'
  | 'writeInteraction'
  | 'forgetExpired'
>;

/** Dropping answers that may be a megabyte each, a few hundred at a time, keeps each statement short. */
const FORGOTTEN_AT_ONCE = 200;

export function createWriteOperations(connections: Connections, tables: Tables): WriteOperations {
  const forKeys = connections.for(vital);
  const forUpkeep = connections.for(upkeep);
  const writeGrouped = groupWrites((group, owner) =>
    upsert(connections.for(owner === null ? mixedGroups : callsOf(owner)).run, tables.interactions, group),
  );

  return {
    async createOrganisation(name, orgId, createdAtMs): Promise<Organisation | null> {
      const [row] = await forKeys.run({
        text: `INSERT INTO organisations (org_id, name, created_at_ms) VALUES ($1, $2, $3)
          ON CONFLICT (name) DO NOTHING RETURNING organisation`,
        values: [orgId, name, createdAtMs],
      });
      return row === undefined ? null : { organisation: Number(row[0]), orgId, name, createdAtMs };
    },

    addKey: (key) => insertKey(forKeys.run, key),

    replaceKey: (keyId, endsAtMs, successor) =>
      forKeys.transaction('COMMIT', async ({ run: runInside }) => {
        const replaced = await runInside({
          // LEAST passes over a null. Whoever waits here for another call looks again at what that one left.
          text: `UPDATE api_keys SET expires_at_ms = LEAST($1::bigint, expires_at_ms), replaced_by = $2
            WHERE key_id = $3 AND replaced_by IS NULL RETURNING key_id`,
          values: [endsAtMs, successor.keyId, keyId],
        });
        if (replaced.length === 0) {
          const text = 'SELECT key_id FROM api_keys WHERE key_id = $1';
          const known = await runInside({ text, values: [keyId] });
          if (known.length === 0) throw new Error(`there is no key ${keyId} to replace`);
          return false;
        }
        await insertKey(runInside, successor);
        return true;
      }),

    async revokeKey(keyId, revokedAtMs) {
      await forKeys.run({
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

    async write({ organisation, type, batches, dryRun, memory }: Upload): Promise<Written> {
      const table = recordTable(tables, type);
      const sessions = connections.for(callsOf(organisation));
      const rows = batches.flat();
      const mayCopy = areWorthCopying(rows);
      const merge = async (runInside: Run): Promise<readonly Tally[]> => {
        const owned = rows.map((row): OwnedRow => ({ organisation, row }));
        return talliesOf(batches, await upsert(runInside, table, owned));
      };
      const allNew = batches.map(({ length }) => ({ created: length, updated: 0, unchanged: 0 }));
      if (memory === null && !dryRun) {
        const isCopied = mayCopy && (await copyIfNew(sessions, table, organisation, rows));
        return { kind: 'written', tallies: isCopied ? allNew : await merge(sessions.run) };
      }
      return sessions.transaction(dryRun ? 'ROLLBACK' : 'COMMIT', (session) =>
        unlessRemembered(session.run, memory, async () => {
          const isCopied =
            mayCopy && (await undoneIfNot(session, () => copyIfNew(session, table, organisation, rows)));
          return isCopied ? allNew : merge(session.run);
        }),
      );
    },

    async writeInteraction({ organisation, row, memory }: InteractionWrite): Promise<Written> {
      const owned = row === null ? [] : [{ organisation, row }];
      if (memory === null) {
        const fates = await Promise.all(owned.map(writeGrouped));
        return { kind: 'written', tallies: fates.map((fate) => tallyOf([fate])) };
      }
      return connections.for(callsOf(organisation)).transaction('COMMIT', ({ run: runInside }) =>
        unlessRemembered(runInside, memory, async () => {
          const fates = await upsert(runInside, tables.interactions, owned);
          return fates.map((fate) => tallyOf([fate]));
        }),
      );
    },

    async forgetExpired(nowMs) {
      for (;;) {
        const dropped = await forUpkeep.run({
          text: `DELETE FROM idempotency_answers WHERE (organisation, path, key) IN
              (SELECT organisation, path, key FROM idempotency_answers
                WHERE expires_at_ms <= $1 ORDER BY expires_at_ms LIMIT ${FORGOTTEN_AT_ONCE})
              AND expires_at_ms <= $1
            RETURNING 1`,
          values: [nowMs],
        });
        if (dropped.length < FORGOTTEN_AT_ONCE) return;
      }
    },
  };
}

/** Within a transaction, which a failed statement would otherwise spoil as a whole. */
async function undoneIfNot({ run }: Session, work: () => Promise<boolean>): Promise<boolean> {
  await run({ text: 'SAVEPOINT trial', values: [] });
  const isDone = await work();
  await run({ text: isDone ? 'RELEASE SAVEPOINT trial' : 'ROLLBACK TO SAVEPOINT trial', values: [] });
  return isDone;
}

/** What a dry run remembers is undone with all else that it does. */
async function unlessRemembered(
  run: Run,
  memory: Memory | null,
  write: () => Promise<readonly Tally[]>,
): Promise<Written> {
  if (memory !== null) {
    if (!(await hold(run, memory))) return { kind: 'running' };
    const remembered = await recall(run, memory, memory.keptAtMs);
    if (remembered !== null) return { kind: 'already', remembered };
  }
  const tallies = await write();
  if (memory !== null) await keep(run, memory, tallies);
  return { kind: 'written', tallies };
}

function talliesOf(batches: Upload['batches'], fates: readonly Fate[]): readonly Tally[] {
  let next = 0;
  return batches.map((rows) => {
    const first = next;
    next += rows.length;
    return tallyOf(fates.slice(first, next));
  });
}

function tallyOf(fates: readonly Fate[]): Tally {
  const tally = { created: 0, updated: 0, unchanged: 0 };
  for (const fate of fates) tally[fate]++;
  return tally;
}

async function insertKey(run: Run, key: Omit<ApiKey, 'orgId'>): Promise<void> {
  await run({
    text: `INSERT INTO api_keys
        (key_id, organisation, secret_hash, name, scopes,
         created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, replaced_by)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    values: [
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
    ],
  });
}
