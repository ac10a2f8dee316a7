// Writes rows to PostgreSQL with a plain COPY.

import { once } from 'node:events';
import type { UploadTypeName } from '@headgate/catalogue/record-types.ts';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { Row } from '../server/store/rows.ts';
import { catalogueTables, quoted, quotedList, tableOf } from '../server/store/tables.ts';
import { ORGANISATION } from './rows.ts';

/** Runs one COPY for each batch of rows, so each batch is one commit. */
export async function copyInto(url: string, type: UploadTypeName, batches: Iterable<Row[]>): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    for (const rows of batches) await copy(client, copySql(type), Buffer.from(copyText(rows)));
  } finally {
    await client.end();
  }
}

export function copySql(type: UploadTypeName): string {
  const { name, columns } = tableOf(catalogueTables, type);
  return `COPY ${quoted(name)} (${quotedList(['organisation', ...columns.map((column) => column.name)])}) FROM STDIN`;
}

export function copyText(rows: readonly Row[]): string {
  const lines = rows.map((row) =>
    [ORGANISATION, ...row].map((value) => (value === null ? '\\N' : String(value))).join('\t'),
  );
  return `${lines.join('\n')}\n`;
}

export async function copy(client: pg.Client, sql: string, data: Buffer): Promise<void> {
  const copying = client.query(copyFrom(sql));
  copying.end(data);
  await once(copying, 'finish');
}
