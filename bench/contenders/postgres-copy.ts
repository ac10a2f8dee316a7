// The upper bound on PostgreSQL: COPY of the same rows into Headgate's table, with one durable commit per upload.

import pg from 'pg';
import { prepareChild, takeOrder } from '../../tests/harness/prepared-child.ts';
import { copy, copySql, copyText } from '../copy.ts';
import type { PostgresDatabases } from '../databases.ts';
import { keptRecords, makeRecordTexts } from '../load/record-texts.ts';
import type { Timed, UploadOrder } from '../load/uploads.ts';
import { rowsOf } from '../rows.ts';
import { workloads } from '../workloads.ts';
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
          makeRecordTexts(order);
          const clients = connections === 'one connection' ? 1 : order.clients;
          const job: CopyOrder = { url, order: { ...order, clients } };
          return (await prepareChild<CopyOrder, Timed>(new URL(import.meta.url), job)).run();
        },
        stop: remove,
      };
    },
  };
}

if (import.meta.main) {
  takeOrder<CopyOrder, Timed>(async ({ url, order }) => {
    const { workload, uploads, recordsPerUpload, clients } = order;
    const sql = copySql(workloads[workload].type);
    const bodies = Array.from(keptRecords(order), (records) =>
      Buffer.from(copyText(rowsOf(workload, records))),
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
