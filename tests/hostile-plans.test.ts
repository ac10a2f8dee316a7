// Short queries that DuckDB would plan for minutes, or with gigabytes of memory: they are refused, and nobody waits.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Api, RefusalBody } from './harness/api.ts';
import { describeOnceOn, forEachStore } from './harness/for-each-store.ts';
import { runningHeadgate } from './harness/running-headgate.ts';

const LONGEST_MS = 1000;
/** Reading a large query takes 60 ms on an idle core, so that a query of others takes 0.4 s, or a second on busy ones. */
const LONGEST_BESIDE_LARGE_MS = 2000;
const PAUSE_MS = 20;
/** The start of a process that plans queries takes longer. */
const LEAST_START_MS = 100;
const LARGE_QUERIES_MS = 4000;

/** Each of 20 steps uses the one before it twice. */
function doubled(
  step: (before: string) => string,
  first = 'SELECT 1 AS a',
  last = 'SELECT a FROM t20',
): string {
  const steps = Array.from({ length: 20 }, (_, i) => `t${i + 1} AS (${step(`t${i}`)})`);
  return `WITH t0 AS (${first}), ${steps.join(', ')} ${last}`;
}

function nested(times: number, before: string, inner: string, after: string): string {
  return before.repeat(times) + inner + after.repeat(times);
}

const struct = (before: string): string => `SELECT {'x': a, 'y': a} AS a FROM ${before}`;
const aliases = Array.from({ length: 20 }, (_, i) => `sin(a${i}) + cos(a${i}) AS a${i + 1}`);

const hostile: Readonly<Record<string, { readonly sql: string; readonly params?: readonly string[] }>> = {
  'a struct': { sql: doubled(struct) },
  'a struct of what a filter leaves': {
    sql: doubled(struct, "SELECT region AS a FROM customers WHERE region BETWEEN 'A' AND 'B'"),
  },
  'a struct in a summary': { sql: `SUMMARIZE ${doubled(struct)}` },
  'a struct of a parameter': { sql: doubled(struct, 'SELECT ? AS a'), params: ['a'] },
  'a map': { sql: doubled((before) => `SELECT map {a: a} AS a FROM ${before}`) },
  'a union': { sql: doubled((before) => `SELECT {'x': union_value(k := a), 'y': a} AS a FROM ${before}`) },
  'a list of structs': { sql: doubled((before) => `SELECT [{'x': a, 'y': a}] AS a FROM ${before}`) },
  'an array of arrays': { sql: `SELECT CAST(NULL AS INTEGER${'[2]'.repeat(60)})` },
  'a struct of arrays': { sql: `SELECT CAST(NULL AS ${nested(50, 'STRUCT(a ', 'INTEGER', '[2])')})` },
  columns: { sql: doubled((before) => `SELECT *, * FROM ${before}`, undefined, 'SELECT count(*) FROM t20') },
  'copies of a query': {
    sql: doubled((before) => `SELECT x.a FROM ${before} x, ${before} y`).replaceAll(
      'AS (',
      'AS NOT MATERIALIZED (',
    ),
  },
  'names of expressions': { sql: `SELECT amount AS a0, ${aliases.join(', ')} FROM transactions` },
  'macros of DuckDB': { sql: `SELECT ${nested(20, 'fmod(', 'amount', ', 2)')} FROM transactions` },
  'subqueries that depend on each other': {
    sql: `SELECT 1 FROM customers c WHERE region = ${nested(
      25,
      '(SELECT min(d.region) FROM customers d, (SELECT c.user_id AS u) c WHERE d.user_id = c.u AND d.region = ',
      "''",
      ')',
    )}`,
  },
  'a computation with constants': {
    sql: `SELECT damerau_levenshtein('${'a'.repeat(20_000)}', '${'b'.repeat(20_000)}')`,
  },
};

/** Sends small queries during an attack, which must be answered soon. Returns how long they took. */
async function nobodyWaits(other: Api, attack: Promise<unknown>, mostMs: number): Promise<string> {
  let isAttacked = true;
  const waits = async (): Promise<number[]> => {
    const times: number[] = [];
    while (isAttacked) {
      const beganAtMs = performance.now();
      // Each query is another one, because those that were planned before are not planned again.
      const sql = `SELECT ${times.length + 2}`;
      const { status, text } = await other.request('/v1/sql', { body: { sql } });
      assert.equal(status, 200, text);
      times.push(performance.now() - beganAtMs);
      await sleep(PAUSE_MS);
    }
    return times;
  };
  const [times] = await Promise.all([waits(), attack.finally(() => (isAttacked = false))]);
  const longestMs = Math.max(...times);
  assert.ok(longestMs < mostMs, `a query took ${longestMs} ms`);
  return `${times.length} queries, the longest took ${Math.round(longestMs)} ms`;
}

forEachStore((store) => {
  describeOnceOn(store, 'a query that is expensive to plan', () => {
    const folder = join(tmpdir(), `hg-plans-${randomUUID().slice(0, 8)}`);
    const server = runningHeadgate(store, { HEADGATE_ANALYTICS_DIR: folder });
    after(() => rmSync(folder, { recursive: true, force: true }));

    test('queries that take too long or too much memory to plan are refused, and nobody else waits', async (t) => {
      const [attacker, other] = [await server.newApi(), await server.newApi()];
      for (const api of [attacker, other]) {
        assert.equal((await api.request('/v1/sql', { body: { sql: 'SELECT 1' } })).status, 200);
      }
      const attack = async (): Promise<void> => {
        await Promise.all(
          Object.entries(hostile).map(async ([name, body]) => {
            const reply = await attacker.request<RefusalBody>('/v1/sql', { body });
            assert.equal(reply.status, 400, `${name}: ${reply.text}`);
            assert.match(reply.body.message, /^The query is too complex: /, name);
          }),
        );
      };
      t.diagnostic(await nobodyWaits(other, attack(), LONGEST_MS));
      assert.doesNotMatch(server.headgate.output(), /analytics process/);
    });

    test('a query does not wait for the replacement of a process that another organisation has ended', async (t) => {
      const [attacker, other] = [await server.newApi(), await server.newApi()];
      assert.equal((await other.request('/v1/sql', { body: { sql: 'SELECT 1' } })).status, 200);
      const times: number[] = [];
      for (let round = 0; round < 5; round++) {
        const { status } = await attacker.request('/v1/sql', { body: hostile['a struct']! });
        assert.equal(status, 400);
        const beganAtMs = performance.now();
        const reply = await other.request('/v1/sql', { body: { sql: `SELECT ${round} AS round` } });
        assert.equal(reply.status, 200, reply.text);
        times.push(performance.now() - beganAtMs);
      }
      const leastMs = Math.min(...times);
      t.diagnostic(`${Math.round(leastMs)} ms at best`);
      assert.ok(leastMs < LEAST_START_MS, `the queries took ${times.join(', ')} ms`);
    });

    test('large queries are refused before they make anybody wait', async (t) => {
      const [attacker, other] = [await server.newApi(), await server.newApi()];
      assert.equal((await other.request('/v1/sql', { body: { sql: 'SELECT 1' } })).status, 200);
      let refusals = 0;
      const sql = `SELECT nosuch(1)${',*'.repeat(49_000)}`;
      const untilMs = performance.now() + LARGE_QUERIES_MS;
      const attack = async (): Promise<void> => {
        while (performance.now() < untilMs) {
          const reply = await attacker.request<RefusalBody>('/v1/sql', { body: { sql } });
          // Above its number of queries at once, the organisation gets a 429.
          if (reply.status === 429) {
            await sleep(PAUSE_MS);
            continue;
          }
          assert.equal(reply.status, 400, reply.text);
          assert.match(reply.body.message, /^The query has too many names/);
          refusals++;
        }
      };
      const attacks = Promise.all(Array.from({ length: 8 }, attack));
      t.diagnostic(await nobodyWaits(other, attacks, LONGEST_BESIDE_LARGE_MS));
      assert.ok(refusals > 8, `${refusals} queries were refused`);
    });

    test('a query that was planned before does not wait for one that is being planned', async () => {
      const api = await server.newApi();
      const ended: string[] = [];
      const query = async (sql: string): Promise<void> => {
        await api.request('/v1/sql', { body: { sql } });
        ended.push(sql);
      };
      const { sql: slow } = hostile.columns!;
      await query('SELECT 1');
      await Promise.all([query(slow), sleep(PAUSE_MS).then(() => query('SELECT 1'))]);
      assert.deepEqual(ended, ['SELECT 1', 'SELECT 1', slow]);
    });
  });
});
