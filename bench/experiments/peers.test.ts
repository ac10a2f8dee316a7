import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Contender } from '../contenders/contender.ts';
import { type PostgresDatabases, SqliteDatabases } from '../databases.ts';
import { keepRecordTextsIn } from '../load/record-texts.ts';
import { plans } from '../plan.ts';
import { uploadsBesidePeers } from './peers.ts';

/** Returns a contender that reports the given rate without storing any record. */
function service(name: string, perSecond: number): Contender {
  const upload = async () => ({ count: perSecond, elapsedMs: 1000 });
  return { name, start: async () => ({ upload, stop: async () => {} }) };
}

test('each claim is the ratio to its own peer, with as many rounds as the plan has for peers', async () => {
  const sqlite = await SqliteDatabases.create();
  keepRecordTextsIn(join(sqlite.folder, 'records'));
  const { comparisons, figures } = await uploadsBesidePeers({
    plan: { ...plans.smoke, rounds: 1, peerRounds: 2 },
    sqlite,
    // No peer is compared on PostgreSQL.
    postgres: {} as PostgresDatabases,
    peers: {
      onSqlite: [
        { contender: service('slow', 10), claim: 'toTextbookOnSqlite' },
        { contender: service('slower', 2), claim: null },
        { contender: service('slowest', 1), claim: 'toDirectus' },
      ],
      onPostgres: [],
    },
    say: () => {},
  });
  const [{ series }] = comparisons as [(typeof comparisons)[number]];
  assert.deepEqual(
    series.map(({ contender, values }) => [contender, values.length]),
    [
      ['Headgate on SQLite', 2],
      ['slow', 2],
      ['slower', 2],
      ['slowest', 2],
    ],
  );
  const ours = series[0]!.values;
  assert.deepEqual(
    figures.map(({ id, values }) => [id, values]),
    [
      ['toTextbookOnSqlite', ours.map((value) => value / 10)],
      ['toDirectus', ours],
    ],
  );
});
