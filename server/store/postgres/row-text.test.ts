import assert from 'node:assert/strict';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { describe, test } from 'node:test';
import pg from 'pg';
import { catalogueTables, tableOf } from '../tables.ts';
import { arrayOf, copyTextOf } from './row-text.ts';
import { testServer } from './test-server.ts';

const LONGEST_STEP_MS = 250;

describe('a column written as an array', () => {
  test('has the bytes of its texts, however many of them are quotes', async () => {
    const texts = Array.from({ length: 1000 }, () => `"\\`.repeat(1000));
    const array = await arrayOf(
      texts.map((text) => [text]),
      0,
      'text',
    );
    const overheadBytes = 20 + 4 * texts.length;
    assert.equal(array.length, 2000 * texts.length + overheadBytes);
  });

  test('is read by PostgreSQL', async () => {
    const client = new pg.Client((await testServer()).urlOf('postgres'));
    await client.connect();
    try {
      for (const texts of [['a,b', '{}', '"', '\\', 'NULL', ' ', '', null, 'é\u2028😀'], ['x'], [null], []]) {
        const array = await arrayOf(
          texts.map((text) => [text]),
          0,
          'text',
        );
        const { rows } = await client.query<{ texts: unknown }>('SELECT $1::text[] AS texts', [array]);
        assert.deepEqual(rows[0]!.texts, texts);
      }
    } finally {
      await client.end();
    }
  });

  test('is empty for no rows', async () => {
    assert.equal(await arrayOf([], 0, 'uuid'), '{}');
  });

  const strange = [
    ['uuid', 'a,b'],
    ['date-time', '2024-05-01T09:30:00Z'],
    ['date', 20240501],
    ['number', 'north'],
    ['number', Number.NaN],
    ['number', Number.POSITIVE_INFINITY],
  ] as const;
  for (const [kind, value] of strange) {
    test(`refuses ${value} as a ${kind}`, () => {
      return assert.rejects(async () => arrayOf([[value]], 0, kind));
    });
  }
});

describe('rows with 32 MiB of newlines', () => {
  const text = '\n'.repeat(32 * 1024);
  const shops = tableOf(catalogueTables, 'shops');
  const rows = Array.from({ length: 1024 }, () =>
    shops.columns.map(({ kind }) => (kind === 'text' ? text : null)),
  );
  const position = shops.columns.findIndex(({ kind }) => kind === 'text');

  for (const [what, encode] of [
    ['as an array', () => arrayOf(rows, position, 'text')],
    ['for COPY', () => copyTextOf(shops, 1, rows)],
  ] as const) {
    test(`are written ${what} in steps`, async () => {
      const delay = monitorEventLoopDelay({ resolution: 1 });
      delay.enable();
      await encode();
      delay.disable();
      const longestMs = delay.max / 1e6;
      assert.ok(longestMs < LONGEST_STEP_MS, `${longestMs} ms`);
    });
  }
});
