// Defines the tables of the textbook service, both as Drizzle definitions and as CREATE TABLE statements.

import type { Column, Columns } from './drizzle.ts';

/** Makes columns of the types that the tables need. Each database has its own version. */
export interface ColumnKinds {
  id(): Column;
  text(): Column;
  number(): Column;
  boolean(): Column;
  time(): Column;
}

export interface Tables {
  readonly shops: Columns;
  readonly transactions: Columns;
}

export const idColumns = { shops: 'shop_id', transactions: 'transaction_id' } as const;
export type TableName = keyof typeof idColumns;

export function tablesOf(
  table: (name: string, columns: Columns) => Columns,
  { id, text, number, boolean, time }: ColumnKinds,
): Tables {
  const bookkeeping = (): Columns => ({
    created: time(),
    updated: time(),
    is_deleted: boolean().notNull().default(false),
  });
  const shops = table('shops', {
    shop_id: id().primaryKey(),
    name: text().notNull(),
    region: text().notNull(),
    is_public: boolean(),
    ...bookkeeping(),
  });
  const transactions = table('transactions', {
    transaction_id: id().primaryKey(),
    shop_id: id()
      .notNull()
      .references(() => shops.shop_id!),
    region: text().notNull(),
    savings: number().notNull(),
    amount: number().notNull(),
    student_id: id(),
    offer_id: id(),
    branch_id: id(),
    source: text(),
    ...bookkeeping(),
    discount_name: text(),
    discount_type: text(),
    discount_value: number(),
  });
  return { shops, transactions };
}

/** The names of the column types in SQL. */
type TypeNames = Readonly<Record<keyof ColumnKinds, string>>;

const sqliteTypes: TypeNames = { id: 'text', text: 'text', number: 'real', boolean: 'integer', time: 'text' };
const postgresTypes: TypeNames = {
  id: 'uuid',
  text: 'text',
  number: 'double precision',
  boolean: 'boolean',
  time: 'timestamptz',
};

export const createSqliteTables = createTables(sqliteTypes);
export const createPostgresTables = createTables(postgresTypes);

function createTables({ id, text, number, boolean, time }: TypeNames): string {
  const bookkeeping = `created ${time}, updated ${time}, is_deleted ${boolean} NOT NULL DEFAULT false`;
  return `
    CREATE TABLE shops (
      shop_id ${id} PRIMARY KEY NOT NULL,
      name ${text} NOT NULL,
      region ${text} NOT NULL,
      is_public ${boolean},
      ${bookkeeping}
    );
    CREATE TABLE transactions (
      transaction_id ${id} PRIMARY KEY NOT NULL,
      shop_id ${id} NOT NULL REFERENCES shops (shop_id),
      region ${text} NOT NULL,
      savings ${number} NOT NULL,
      amount ${number} NOT NULL,
      student_id ${id},
      offer_id ${id},
      branch_id ${id},
      source ${text},
      ${bookkeeping},
      discount_name ${text},
      discount_type ${text},
      discount_value ${number}
    );
  `;
}
