import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { test } from 'node:test';
import { testFolder } from './test-folder.ts';
import { createWrites } from './thread-operations.ts';
import { openForWriting } from './writing-connection.ts';

const organisation = 1;

test('ids that expire in the transaction of their upload are no longer counted', (t) => {
  const database = openForWriting(join(testFolder(t), 'headgate.db'));
  t.after(() => database.close());
  const { writes, ledger } = createWrites(database);
  const upload = (receivedAtMs: number, ids: number): void => {
    const entry = {
      requestId: randomUUID(),
      keyId: 'key',
      receivedAtMs,
      bytes: 10,
      received: ids,
      rejected: 0,
      causesJson: null,
    };
    const changed = Array.from({ length: ids }, () => randomUUID());
    ledger.addUpload(organisation, 'shops', entry, { created: ids, updated: 0 }, changed);
  };
  database.exec('BEGIN IMMEDIATE');
  ledger.begin();
  upload(1000, 3);
  assert.equal(writes.expireLedger(organisation, 2000, 0), true);
  upload(3000, 2);
  ledger.end();
  database.exec('COMMIT');
  assert.deepEqual(
    { ...database.prepare('SELECT last_seq, ids_after_seq, kept_ids FROM ledgers').get() },
    { last_seq: 2, ids_after_seq: 1, kept_ids: 2 },
  );
});
