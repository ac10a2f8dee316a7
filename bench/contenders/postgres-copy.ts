// The ceiling on PostgreSQL: COPY of the same rows into Headgate's own table, one durable commit per upload.

import { once } from 'node:events';
import type { RecordTypeName } from '@headgate/catalogue/record-types.ts';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { Row } from '../../server/store/store.ts';
import { catalogueTables, quoted, quotedList, recordTable } from '../../server/store/tables.ts';
import { prepareChild, takeOrder } from '../child.ts';
import type { PostgresDatabases } from '../databases.ts';
import type { Timed, UploadOrder } from '../load/uploads.ts';
import { ORGANISATION, rowsOf } from '../rows.ts';
import { recordsOf, workloads } from '../workloads.ts';
import type { Contender } from './contender.ts';

interface CopyOrder {
  readonly url: string;
  readonly order: UploadOrder;
}

export function postgresCopy(
  databases: PostgresDatabases,
  connections: 'one connection' | 'every client',
): Contender {
  return {
    name: `COPY, ${connections}`,
    async start(rowsPresent) {
      const { database: url, remove } = await databases.newDatabase(rowsPresent);
      return {
        async upload(order) {
          const clients = connections === 'one connection' ? 1 : order.clients;
          const job: CopyOrder = { url, order: { ...order, clients } };
          return (await prepareChild<CopyOrder, Timed>(new URL(import.meta.url), job)).run();
        },
        stop: remove,
      };
    },
  };
}

/** One COPY, and so one commit, per batch of rows. */
export async function copyInto(url: string, type: RecordTypeName, batches: Iterable<Row[]>): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    for (const rows of batches) await copy(client, copySql(type), Buffer.from(copyText(rows)));
  } finally {
    await client.end();
  }
}

function copySql(type: RecordTypeName): string {
  const { name, columns } = recordTable(catalogueTables, type);
  return `COPY ${quoted(name)} (${quotedList(['organisation', ...columns.map((column) => column.name)])}) FROM STDIN`;
}

function copyText(rows: readonly Row[]): string {
  const lines = rows.map((row) =>
    [ORGANISATION, ...row].map((value) => (value === null ? '\\N' : String(value))).join('\t'),
  );
  return `${lines.join('\n')}\n`;
}

async function copy(client: pg.Client, sql: string, data: Buffer): Promise<void> {
  const copying = client.query(copyFrom(sql));
  copying.end(data);
  await once(copying, 'finish');
}

if (import.meta.main) {
  takeOrder<CopyOrder, Timed>(async ({ url, order }) => {
    const { workload, seed, uploads, recordsPerUpload, clients } = order;
    const sql = copySql(workloads[workload].type);
    const bodies = Array.from({ length: uploads }, (_, upload) =>
      Buffer.from(copyText(rowsOf(workload, recordsOf(workload, seed, upload, recordsPerUpload)))),
    );
    const connections = await Promise.all(
      Array.from({ length: clients }, async () => {
        const client = new pg.Client(url);
        await client.connect();
        return client;
      }),
    );
    return async () => {
      const startedAtMs = performance.now();
      let sent = 0;
      await Promise.all(
        connections.map(async (client) => {
          while (sent < bodies.length) await copy(client, sql, bodies[sent++]!);
        }),
      );
      const elapsedMs = performance.now() - startedAtMs;
      await Promise.all(connections.map((client) => client.end()));
      return { count: uploads * recordsPerUpload, elapsedMs };
    };
  });
}
