// Directus, a popular headless CMS for PostgreSQL databases, as a contender. Directus stores either all records of an
// upload or none, and refuses existing ids, so it is measured only with new, valid records.

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../server/store/postgres/test-server.ts';
import { referencedShops, workloads } from '../workloads.ts';
import { type Contender, uploadOverHttp } from './contender.ts';
import type { Peer } from './peers.ts';
import { ask, type NewDatabase, peerContender, runPeerCommand, startPeer } from './running-peer.ts';

export const directusPeer: Peer = {
  name: 'directus',
  version: '11.17.4',
  packages: { directus: '11.17.4' },
  // Directus needs isolated-vm only for extensions, which are not used here. This version includes its binaries.
  overrides: { 'isolated-vm': '6.2.0' },
};

interface Field {
  readonly field: string;
  readonly type: 'uuid' | 'string' | 'float' | 'boolean' | 'timestamp';
  readonly schema: { readonly is_nullable: boolean; readonly is_primary_key?: true };
}

const required = (field: string, type: Field['type']): Field => ({
  field,
  type,
  schema: { is_nullable: false },
});
const optional = (field: string, type: Field['type']): Field => ({
  field,
  type,
  schema: { is_nullable: true },
});
const key = (field: string): Field => ({
  field,
  type: 'uuid',
  schema: { is_nullable: false, is_primary_key: true },
});
const bookkeeping = [
  optional('created', 'timestamp'),
  optional('updated', 'timestamp'),
  optional('is_deleted', 'boolean'),
];

const collections: Readonly<Record<string, readonly Field[]>> = {
  shops: [
    key('shop_id'),
    required('name', 'string'),
    required('region', 'string'),
    optional('is_public', 'boolean'),
    ...bookkeeping,
  ],
  transactions: [
    key('transaction_id'),
    required('shop_id', 'uuid'),
    required('region', 'string'),
    required('savings', 'float'),
    required('amount', 'float'),
    optional('student_id', 'uuid'),
    optional('offer_id', 'uuid'),
    optional('branch_id', 'uuid'),
    optional('source', 'string'),
    ...bookkeeping,
    optional('discount_name', 'string'),
    optional('discount_type', 'string'),
    optional('discount_value', 'float'),
  ],
};

/** `folder` is where `directusPeer` is installed. */
export function directus(folder: string, newDatabase: NewDatabase): Contender {
  const name = 'Directus 11 on PostgreSQL';
  return peerContender(name, async (cleanUp) => {
    const { url: database, drop } = await newDatabase();
    cleanUp.defer(drop);
    const workFolder = await mkdtemp(join(tmpdir(), 'headgate-bench-directus-'));
    cleanUp.defer(() => rm(workFolder, { recursive: true, force: true }));
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const token = randomBytes(20).toString('hex');
    const env = {
      HOST: '127.0.0.1',
      PORT: String(port),
      PUBLIC_URL: url,
      DB_CLIENT: 'pg',
      DB_CONNECTION_STRING: database,
      SECRET: randomBytes(20).toString('hex'),
      ADMIN_EMAIL: 'admin@example.com',
      ADMIN_PASSWORD: randomBytes(20).toString('hex'),
      ADMIN_TOKEN: token,
      MAX_PAYLOAD_SIZE: '32mb',
      LOG_LEVEL: 'warn',
      TELEMETRY: 'false',
      CACHE_ENABLED: 'false',
      RATE_LIMITER_ENABLED: 'false',
      // With the pressure limiter, Directus responds with 503 during a large upload.
      PRESSURE_LIMITER_ENABLED: 'false',
    };
    const cli = join(folder, 'node_modules', 'directus', 'cli.js');
    const headers = { Authorization: `Bearer ${token}` };
    await runPeerCommand({ name, script: [cli, 'bootstrap'], folder: workFolder, env });
    await startPeer({ name, script: [cli, 'start'], folder: workFolder, env }, `${url}/server/ping`, cleanUp);
    for (const [collection, fields] of Object.entries(collections)) {
      // `accountability: null` turns off the log of activity and revisions, which adds two rows for each record.
      await ask(`${url}/collections`, headers, {
        collection,
        meta: { accountability: null },
        schema: {},
        fields,
      });
    }
    await ask(`${url}/relations`, headers, {
      collection: 'transactions',
      field: 'shop_id',
      related_collection: 'shops',
      schema: { on_delete: 'NO ACTION' },
    });
    await ask(`${url}/items/shops?fields=shop_id`, headers, referencedShops);
    return async (order) => {
      if (order.workload === 'mixed')
        throw new Error(`${name} cannot take the good records of an upload without the bad`);
      const collection = workloads[order.workload].type;
      // By default the response contains every stored record, so only the id is requested.
      const [id] = collections[collection]!;
      const target = `${url}/items/${collection}?fields=${id!.field}`;
      return uploadOverHttp({ url: target, headers, opening: '[', closing: ']' }, order);
    };
  });
}
