// The service that a good engineer writes in an afternoon: Fastify, its JSON Schema validation, and an ORM.
// Its settings are the environment variables PEER_FOLDER (where the ORM is installed), DATABASE (a PostgreSQL URL, or
// the path of a SQLite database), API_KEY and PORT.

import { createHash, timingSafeEqual } from 'node:crypto';
import Fastify from 'fastify';
import { loaderFrom, type Row } from './drizzle.ts';
import { openPostgres, openSqlite } from './store.ts';
import type { TableName } from './tables.ts';

const MAX_RECORDS = 5000;
const MAX_BODY_BYTES = 32 * 1024 * 1024;

const id = { type: 'string', format: 'uuid' };
const optionalId = { type: ['string', 'null'], format: 'uuid' };
const text = { type: 'string', minLength: 1, maxLength: 10_000 };
const optionalText = { type: ['string', 'null'], maxLength: 10_000 };
const region = { type: 'string', pattern: '^[A-Za-z]{2}$' };
const bookkeeping = {
  created: { type: ['string', 'null'], format: 'date-time' },
  updated: { type: ['string', 'null'], format: 'date-time' },
  is_deleted: { type: 'boolean' },
};

const recordSchemas: Readonly<Record<TableName, object>> = {
  shops: {
    type: 'object',
    required: ['shop_id', 'name', 'region'],
    additionalProperties: false,
    properties: { shop_id: id, name: text, region, is_public: { type: ['boolean', 'null'] }, ...bookkeeping },
  },
  transactions: {
    type: 'object',
    required: ['transaction_id', 'shop_id', 'region', 'savings', 'amount'],
    additionalProperties: false,
    properties: {
      transaction_id: id,
      shop_id: id,
      region,
      savings: { type: 'number', minimum: 0 },
      amount: { type: 'number', exclusiveMinimum: 0 },
      student_id: optionalId,
      offer_id: optionalId,
      branch_id: optionalId,
      source: optionalText,
      ...bookkeeping,
      discount_name: optionalText,
      discount_type: optionalText,
      discount_value: { type: ['number', 'null'] },
    },
  },
};

const bodySchema = {
  type: 'object',
  required: ['records'],
  properties: { records: { type: 'array', minItems: 1, maxItems: MAX_RECORDS } },
};

interface Upload {
  Body: { records: readonly unknown[] };
}

interface RecordError {
  readonly index: number;
  readonly field: string;
  readonly message: string;
}

function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not given`);
  return value;
}

const hashed = (key: string): Buffer => createHash('sha256').update(key).digest();

const load = loaderFrom(setting('PEER_FOLDER'));
const database = setting('DATABASE');
const store = database.startsWith('postgres:')
  ? await openPostgres(load, database)
  : openSqlite(load, database);
const wantedKey = hashed(`Bearer ${setting('API_KEY')}`);

const app = Fastify({
  bodyLimit: MAX_BODY_BYTES,
  ajv: { customOptions: { coerceTypes: false, removeAdditional: false, allowUnionTypes: true } },
});

app.get('/healthz', () => ({ status: 'ok' }));

app.register(async (data) => {
  data.addHook('onRequest', async (request, reply) => {
    if (timingSafeEqual(hashed(request.headers.authorization ?? ''), wantedKey)) return;
    await reply.code(401).send({ error: 'Unauthorized' });
  });

  for (const type of ['shops', 'transactions'] as const) {
    data.post<Upload>(`/v1/data/${type}`, { schema: { body: bodySchema } }, async (request, reply) => {
      const validate = request.compileValidationSchema(recordSchemas[type]);
      const errors: RecordError[] = [];
      const valid: { index: number; row: Row }[] = [];
      for (const [index, record] of request.body.records.entries()) {
        if (validate(record)) {
          valid.push({ index, row: record as Row });
        } else {
          for (const { instancePath, message } of validate.errors ?? []) {
            errors.push({ index, field: instancePath.slice(1), message: message ?? 'is not valid' });
          }
        }
      }

      const rows: Row[] = [];
      if (type === 'transactions' && valid.length > 0) {
        const shopIds = new Set(valid.map(({ row }) => row.shop_id as string));
        const known = await store.knownShops([...shopIds]);
        for (const { index, row } of valid) {
          if (known.has(row.shop_id as string)) rows.push(row);
          else errors.push({ index, field: 'shop_id', message: 'refers to no known shop' });
        }
      } else {
        rows.push(...valid.map(({ row }) => row));
      }

      if (rows.length > 0) await store.upsert(type, rows);
      if (errors.length > 0) reply.code(rows.length > 0 ? 207 : 400);
      return { stored: rows.length, errors };
    });
  }
});

process.once('SIGTERM', async () => {
  await app.close();
  await store.close();
});

await app.listen({ host: '127.0.0.1', port: Number(setting('PORT')) });
