import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { openStore } from './open-store.ts';
import { StoreUnusable } from './store.ts';

test('an absolute path, the same path with sqlite: and a relative path open the same database', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-open-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'new', 'folder', 'headgate.db');
  for (const [position, database] of [path, `sqlite:${path}`, relative('.', path)].entries()) {
    const store = await openStore(database);
    await store.createOrganisation(`org ${position}`, `id ${position}`, 1);
    assert.equal((await store.organisations()).length, position + 1);
    await store.close();
  }
});

const refused: readonly { readonly database: string; readonly sentence: string }[] = [
  {
    database: 'mysql://localhost/x',
    sentence: 'there is no store for mysql databases: give sqlite:PATH or postgres://…',
  },
  { database: ':memory:', sentence: 'the database must be a file on disk: give sqlite:PATH' },
  { database: 'sqlite:', sentence: 'the database must be a file on disk: give sqlite:PATH' },
];
for (const { database, sentence } of refused) {
  test(`the database ${JSON.stringify(database)} is refused`, async () => {
    await assert.rejects(openStore(database), new StoreUnusable(sentence));
  });
}
