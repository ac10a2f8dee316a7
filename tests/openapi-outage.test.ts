// The API description also covers the responses while the store cannot write or cannot be reached.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  type OwnTestServer,
  startTestServer,
  type TestDatabase,
} from '../server/store/postgres/test-server.ts';
import { DescribedApi, exchange, type Got } from './harness/described-api.ts';
import { type Headgate, startHeadgate } from './harness/headgate.ts';
import { waitUntil } from './harness/waiting.ts';

describe('the API description covers the responses while PostgreSQL', () => {
  let postgres: OwnTestServer;
  let database: TestDatabase;
  let headgate: Headgate;
  let api: DescribedApi;
  let key: string;

  before(async () => {
    postgres = await startTestServer();
    database = await postgres.newDatabase();
    headgate = await startHeadgate(database.url, { HEADGATE_RATE_LIMIT: '1000' });
    ({ key } = await headgate.newKey());
    api = await DescribedApi.of(headgate.url);
    for (const operationId of ['uploadCustomers', 'uploadShops']) {
      assert.equal((await call(operationId)).status, 200);
    }
  });
  after(async () => {
    await headgate.kill();
    await database.drop();
  });

  const call = async (operationId: string): Promise<Got> => {
    const described = api.operation(operationId);
    const { requestBody } = described.operation;
    const [example] = Object.values(requestBody?.content['application/json'].examples ?? {});
    const got = await exchange(headgate.url, {
      method: described.method.toUpperCase(),
      path: described.path,
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      ...(example === undefined ? {} : { body: JSON.stringify(example.value) }),
    });
    api.assertDescribed(described, got);
    return got;
  };

  it('cannot write', async () => {
    await postgres.kill();
    await postgres.start('standby');
    try {
      await waitUntil('reads are served', async () => (await call('listShops')).status === 200);
      const upload = await call('uploadTransactions');
      assert.equal(upload.status, 500);
      assert.ok('batches' in (upload.body as object));
      const interaction = await call('recordInteraction');
      assert.equal(interaction.status, 500);
      assert.ok('details' in (interaction.body as object));
      assert.equal((await call('getReadiness')).status, 503);
      assert.equal((await call('getLiveness')).status, 200);
    } finally {
      await postgres.kill();
      await postgres.start();
    }
  });

  it('is down', async () => {
    await postgres.kill();
    try {
      assert.equal((await call('listShops')).status, 503);
      // The status is 503 if the key has to be looked up again by then.
      const { status } = await call('uploadShops');
      assert.ok(status === 500 || status === 503, String(status));
      assert.equal((await call('getReadiness')).status, 503);
      assert.equal((await call('getOpenApi')).status, 200);
    } finally {
      await postgres.start();
    }
  });
});
