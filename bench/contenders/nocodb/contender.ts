// NocoDB, a spreadsheet interface to databases, as a contender, on a PostgreSQL database with existing tables. NocoDB
// stores either all records of an upload or none, and refuses existing ids, so it is measured only with new, valid
// records.

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { freePort } from '../../../server/store/postgres/test-server.ts';
import { referencedShops, workloads } from '../../workloads.ts';
import { type Contender, uploadOverHttp } from '../contender.ts';
import type { Peer } from '../peers.ts';
import { ask, type NewDatabase, peerContender, startPeer } from '../running-peer.ts';
import { createPostgresTables } from '../textbook/tables.ts';

export const nocodbPeer: Peer = {
  name: 'nocodb',
  version: '0.301.3',
  packages: { nocodb: '0.301.3', express: '4.22.3' },
  overrides: {
    // NocoDB reads spreadsheets with xlsx and requires a later version, which is not on npm.
    xlsx: '0.18.5',
    // NocoDB loads sqlite3 at its start, but does not use it with PostgreSQL. It is replaced, because the required
    // version downloads its binary during installation.
    sqlite3: 'npm:better-sqlite3@13.0.3',
  },
};

const server = fileURLToPath(new URL('server.ts', import.meta.url));
const MAX_RECORDS = 5000;
const MAX_BODY_BYTES = 32 * 1024 * 1024;

/**
 * `folder` is where `nocodbPeer` is installed. `newDatabase` is called twice: for the records, and for NocoDB's own
 * data.
 */
export function nocodb(folder: string, newDatabase: NewDatabase): Contender {
  const name = 'NocoDB on PostgreSQL';
  return peerContender(name, async (cleanUp) => {
    const own = await newDatabase();
    cleanUp.defer(own.drop);
    const records = await newDatabase();
    cleanUp.defer(records.drop);
    const client = new pg.Client({ connectionString: records.url });
    await client.connect();
    cleanUp.defer(() => client.end());
    await client.query(createPostgresTables);
    // NocoDB treats a foreign key as a link, which an upload cannot set. So the constraint is dropped here, and added
    // again once NocoDB has read the tables.
    await client.query('ALTER TABLE transactions DROP CONSTRAINT transactions_shop_id_fkey');

    const workFolder = await mkdtemp(join(tmpdir(), 'headgate-bench-nocodb-'));
    cleanUp.defer(() => rm(workFolder, { recursive: true, force: true }));
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const env = {
      PEER_FOLDER: folder,
      PORT: String(port),
      NC_DB_JSON: JSON.stringify({ client: 'pg', connection: connectionOf(own.url) }),
      NC_TOOL_DIR: workFolder,
      NC_AUTH_JWT_SECRET: randomBytes(20).toString('hex'),
      NC_DATA_PAYLOAD_LIMIT: String(MAX_RECORDS),
      NC_REQUEST_BODY_SIZE: String(MAX_BODY_BYTES),
      NC_DISABLE_AUDIT: 'true',
      NC_DISABLE_TELE: 'true',
      NC_DISABLE_ERR_REPORTS: 'true',
    };
    await startPeer({ name, script: [server], folder: workFolder, env }, `${url}/api/v1/health`, cleanUp);

    const password = `${randomBytes(20).toString('hex')}-A`;
    const user = await ask<{ token: string }>(
      `${url}/api/v1/auth/user/signup`,
      {},
      { email: 'admin@example.com', password },
    );
    const asUser = { 'xc-auth': user.token };
    const base = await ask<{ id: string }>(`${url}/api/v2/meta/bases`, asUser, {
      title: 'bench',
      external: true,
      sources: [
        {
          type: 'pg',
          config: { client: 'pg', connection: connectionOf(records.url), searchPath: ['public'] },
          inflection_column: 'none',
          inflection_table: 'none',
        },
      ],
    });
    await client.query('ALTER TABLE transactions ADD FOREIGN KEY (shop_id) REFERENCES shops');
    const { list: tables } = await ask<{ list: { id: string; table_name: string }[] }>(
      `${url}/api/v2/meta/bases/${base.id}/tables`,
      asUser,
    );
    const recordsUrl = (type: string): string => {
      const table = tables.find(({ table_name }) => table_name === type);
      if (table === undefined) throw new Error(`${name} did not find the table ${type}`);
      return `${url}/api/v2/tables/${table.id}/records`;
    };
    const { token } = await ask<{ token: string }>(`${url}/api/v1/tokens`, asUser, { description: 'bench' });
    const headers = { 'xc-token': token };
    await ask(recordsUrl('shops'), headers, referencedShops);
    return async (order) => {
      if (order.workload === 'mixed')
        throw new Error(`${name} cannot take the good records of an upload without the bad`);
      const target = recordsUrl(workloads[order.workload].type);
      return uploadOverHttp({ url: target, headers, opening: '[', closing: ']' }, order);
    };
  });
}

function connectionOf(databaseUrl: string): object {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl);
  return {
    host: hostname,
    port: Number(port),
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: pathname.slice(1),
  };
}
