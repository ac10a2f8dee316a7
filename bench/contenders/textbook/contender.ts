// The textbook service as a contender: the service that people would write instead of using Headgate.

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../../server/store/postgres/test-server.ts';
import { referencedShops, workloads } from '../../workloads.ts';
import { type Contender, uploadOverHttp } from '../contender.ts';
import type { Peer } from '../peers.ts';
import { ask, type NewDatabase, peerContender, startPeer } from '../running-peer.ts';

/**
 * Drizzle is used instead of Prisma, because Prisma needs generated code and an engine that an install script
 * downloads. This version of better-sqlite3 includes its binaries.
 */
export const textbookPeer: Peer = {
  name: 'textbook',
  version: '1',
  packages: { 'drizzle-orm': '0.45.4', 'better-sqlite3': '13.0.3', pg: '8.23.1' },
};

const service = fileURLToPath(new URL('service.ts', import.meta.url));

/** `folder` is where `textbookPeer` is installed. */
export function textbook(store: 'sqlite', folder: string): Contender;
export function textbook(store: 'postgres', folder: string, newDatabase: NewDatabase): Contender;
export function textbook(store: 'sqlite' | 'postgres', folder: string, newDatabase = newSqlite): Contender {
  const name = `Fastify + Drizzle on ${store === 'sqlite' ? 'SQLite' : 'PostgreSQL'}`;
  return peerContender(name, async (cleanUp) => {
    const { url: database, drop } = await newDatabase();
    cleanUp.defer(drop);
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const key = randomBytes(20).toString('hex');
    const headers = { Authorization: `Bearer ${key}` };
    await startPeer(
      {
        name,
        script: [service],
        folder,
        env: { PEER_FOLDER: folder, DATABASE: database, API_KEY: key, PORT: String(port) },
      },
      `${url}/healthz`,
      cleanUp,
    );
    await ask(`${url}/v1/data/shops`, headers, { records: referencedShops });
    return (order) =>
      uploadOverHttp(
        {
          url: `${url}/v1/data/${workloads[order.workload].type}`,
          headers,
          opening: '{"records":[',
          closing: ']}',
        },
        order,
      );
  });
}

const newSqlite: NewDatabase = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-bench-textbook-'));
  return {
    url: join(folder, 'textbook.db'),
    drop: () => rm(folder, { recursive: true, force: true }),
  };
};
