import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StoreUnusable } from '../store.ts';
import { loadedSqlite, refuseUnsafeSqlite } from './library-version.ts';

test('a version of SQLite that can lose commits or shorten numbers is refused, with advice', () => {
  for (const version of ['3.52.1', '3.51.3', '3.51.0', '3.50.7', '3.44.6', '3.9.9', '2.99.9']) {
    assert.throws(
      () => refuseUnsafeSqlite(version),
      (error: Error) => {
        assert.ok(error instanceof StoreUnusable);
        assert.ok(error.message.includes(`SQLite ${version} `), error.message);
        assert.match(error.message, /use a newer Node/);
        return true;
      },
    );
  }
  for (const version of ['3.53.0', '3.53.4', '3.100.0', '4.0.0']) {
    refuseUnsafeSqlite(version);
  }
});

test('the loaded library reports its version', () => {
  assert.match(loadedSqlite(), /^3\.\d+\.\d+$/);
});
