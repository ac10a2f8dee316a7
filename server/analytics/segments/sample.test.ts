import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import { samplePosition, samplePositionSql } from './sample.ts';
import { SqlParams } from './sql-params.ts';
import { TestReplica } from './testing/replica.ts';

suite('samples', () => {
  let replica: TestReplica;
  before(async () => {
    replica = await TestReplica.open();
  });
  after(() => replica.close());

  const ids = Array.from({ length: 5000 }, () => randomUUID());

  test('a position never changes', () => {
    assert.equal(samplePosition('00000000-0000-4000-8000-000000000001', 'a').toFixed(6), '35.763953');
  });

  test('SQL computes the same positions', async () => {
    await replica.load({ customers: ids.map((customer_id) => ({ customer_id })) });
    for (const salt of ['', 'a', 'ä😀"\'$1']) {
      const params = new SqlParams();
      const sql = `SELECT customer_id, ${samplePositionSql('customer_id', salt, params)} FROM customers`;
      const rows = await replica.rows({ sql, params: params.values });
      assert.equal(rows.length, ids.length);
      for (const [id, position] of rows) assert.equal(position, samplePosition(id as string, salt));
    }
  });

  test('a sample has about its share of the customers, and another salt chooses independently', () => {
    const chosen = ids.filter((id) => samplePosition(id, 'a') < 20);
    assert.ok(Math.abs(chosen.length / ids.length - 0.2) < 0.05);
    const both = chosen.filter((id) => samplePosition(id, 'b') < 20);
    assert.ok(Math.abs(both.length / chosen.length - 0.2) < 0.1);
  });
});
