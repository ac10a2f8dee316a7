// Writes rows to a table. A new row is inserted. A row that differs from the stored one and is not older replaces the
// stored values, unless the table is insert-only. Any other row is skipped.

import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import type { ColumnValue } from '@headgate/catalogue/kinds/kind.ts';
import type { OrganisationNumber, Row, Tally } from '../rows.ts';
import { quoted, quotedList, type Table } from '../tables.ts';
import { codecs, toColumn } from './codecs.ts';
import { DifferingRows } from './differing-rows.ts';
import { type JsonRow, type PackedSlice, rowsIn } from './packed-rows.ts';
import type { Prepare } from './statements.ts';

/** Called with the key of each row that is created or updated. */
export type OnChanged = (key: string) => void;

const ignoreChanged: OnChanged = () => {};

export type Upserts = ReturnType<typeof createUpserts>;

interface TableUpserts {
  readonly insert: StatementSync;
  readonly merge: StatementSync;
  readonly keyPosition: number;
  readonly differing: DifferingRows;
  /**
   * The organisations whose last slice was mostly stored already. Their next slice probably is as well, so only the
   * rows that differ are written.
   */
  readonly repeating: Set<OrganisationNumber>;
}

const NO_ROWID = -1;
/**
 * If more than this share of the rows differ, searching for them takes longer than it saves. A row also counts as
 * differing if SQLite only writes one of its numbers in another way. For an organisation that sends such numbers, the
 * search in every second slice is in vain.
 */
const FEW_SHARE = 0.25;

export function createUpserts(database: DatabaseSync) {
  database.exec('CREATE TEMP TABLE no_rowid (rowid INTEGER PRIMARY KEY)');
  const forgetLastRowid = database.prepare(`INSERT OR REPLACE INTO no_rowid VALUES (${NO_ROWID})`);

  const prepared = new Map<Table, TableUpserts>();
  const upsertsInto = (table: Table): TableUpserts => {
    const known = prepared.get(table) ?? {
      insert: database.prepare(`${insertSql(table)} ON CONFLICT DO NOTHING`),
      merge: database.prepare(`${insertSql(table)} ${mergeSql(table)}`),
      keyPosition: table.columns.findIndex(({ name }) => name === table.key),
      differing: new DifferingRows(database, table),
      repeating: new Set(),
    };
    prepared.set(table, known);
    return known;
  };

  /**
   * Inserts or merges the rows. For a new row, an insert that can merge takes a third longer than a plain insert, and
   * usually either all rows are new or all are stored. Rows are therefore plainly inserted until one is already stored.
   * That row and the following ones are merged, until a row is new again.
   */
  const upsertAll = (
    { insert, merge, keyPosition }: TableUpserts,
    organisation: OrganisationNumber,
    rows: readonly SQLInputValue[][],
    onChanged: OnChanged,
  ): Pick<Tally, 'created' | 'updated'> => {
    let created = 0;
    let updated = 0;
    let wasThere = false;
    // SQLite's last inserted rowid shows whether a merge has inserted or updated, because only an insert changes it.
    // The rowid may stem from another table. If this call has inserted nothing before its first merge, the rowid is
    // therefore set to a value that no row has.
    let lastRowid: number | bigint | null = null;
    for (const row of rows) {
      if (!wasThere) {
        const { changes, lastInsertRowid } = insert.run(...row, organisation);
        if (changes !== 0) {
          lastRowid = lastInsertRowid;
          created++;
          onChanged(row[keyPosition] as string);
          continue;
        }
        wasThere = true;
        if (lastRowid === null) {
          forgetLastRowid.run();
          lastRowid = NO_ROWID;
        }
      }
      const { changes, lastInsertRowid } = merge.run(...row, organisation);
      if (changes === 0) continue;
      wasThere = lastInsertRowid === lastRowid;
      lastRowid = lastInsertRowid;
      if (wasThere) updated++;
      else created++;
      onChanged(row[keyPosition] as string);
    }
    return { created, updated };
  };

  return {
    /**
     * Upserts the rows of a slice. No key may occur twice in it, because all rows are compared before any of them is
     * written.
     */
    slice(
      table: Table,
      organisation: OrganisationNumber,
      slice: PackedSlice,
      onChanged: OnChanged = ignoreChanged,
    ): Tally {
      const upserts = upsertsInto(table);
      const { differing, repeating } = upserts;
      const places = repeating.has(organisation) ? differing.placesIn(slice, organisation) : null;
      if (places?.length === 0) return { created: 0, updated: 0, unchanged: slice.rowCount };
      const all = bindable(table, rowsIn(slice));
      const rows = places === null ? all : places.map((place) => all[place]!);
      const { created, updated } = upsertAll(upserts, organisation, rows, onChanged);
      const others = places?.length ?? created + updated;
      if (others <= slice.rowCount * FEW_SHARE) repeating.add(organisation);
      else repeating.delete(organisation);
      return { created, updated, unchanged: slice.rowCount - created - updated };
    },

    row(
      table: Table,
      organisation: OrganisationNumber,
      row: JsonRow,
      onChanged: OnChanged = ignoreChanged,
    ): Tally {
      const rows = bindable(table, [row]);
      const { created, updated } = upsertAll(upsertsInto(table), organisation, rows, onChanged);
      return { created, updated, unchanged: 1 - created - updated };
    },
  };
}

/** Converts the rows in place to the values that the columns store, and returns them. */
function bindable(table: Table, rows: readonly JsonRow[]): SQLInputValue[][] {
  const converted = table.columns.flatMap(({ kind }, position) => {
    const { conversion } = codecs[kind];
    return conversion === null ? [] : [{ position, toColumn: conversion.toColumn }];
  });
  for (const row of rows as SQLInputValue[][]) {
    if (row.length !== table.columns.length) {
      throw new Error(`a row for ${table.name} has ${row.length} values, not ${table.columns.length}`);
    }
    for (const { position, toColumn } of converted) row[position] = toColumn(row[position] as ColumnValue);
  }
  return rows as SQLInputValue[][];
}

/**
 * Returns an insert whose parameters are the fields in order, then the organisation. The parameters are not numbered,
 * because SQLite would look up each number when its value is bound.
 */
function insertSql({ name, columns }: Table): string {
  const names = columns.map((column) => column.name);
  return `INSERT INTO ${quoted(name)} (${quotedList(names)}, "organisation")
    VALUES (${names.map(() => '?').join(', ')}, ?)`;
}

function mergeSql(table: Table): string {
  if (table.isInsertOnly) return 'ON CONFLICT DO NOTHING';
  const values = valueColumns(table).map(({ name }) => quoted(name));
  return `ON CONFLICT ("organisation", ${quoted(table.key)}) DO UPDATE
    SET ${values.map((column) => `${column} = excluded.${column}`).join(', ')}
    WHERE ${isReplacedSql(table)}`;
}

/** Returns SQL that is true if the incoming row, `excluded`, replaces the stored one. */
function isReplacedSql(table: Table): string {
  if (table.isInsertOnly) return 'false';
  const stored = (name: string): string => `${quoted(table.name)}.${quoted(name)}`;
  const given = (name: string): string => `excluded.${quoted(name)}`;
  const columns = valueColumns(table);
  const isNotOlder = columns.some(({ name }) => name === 'updated')
    ? `(${stored('updated')} IS NULL OR ${given('updated')} IS NULL OR ${given('updated')} >= ${stored('updated')}) AND`
    : '';
  return `${isNotOlder} (${columns.map(({ name }) => `${stored(name)} IS NOT ${given(name)}`).join(' OR ')})`;
}

function valueColumns({ key, columns }: Table): Table['columns'] {
  return columns.filter(({ name }) => name !== key);
}

/** Returns a statement whose parameters are the fields in order, then the organisation. */
function compareSql(table: Table): string {
  const given = table.columns.map(({ name }) => `? AS ${quoted(name)}`);
  return `SELECT ${isReplacedSql(table)} AS "isReplaced" FROM ${quoted(table.name)}, (SELECT ${given.join(', ')}) AS excluded
    WHERE "organisation" = ? AND ${quoted(table.name)}.${quoted(table.key)} = excluded.${quoted(table.key)}`;
}

/** The texts of the comparing statements, which are needed for every twenty rows of a dry run. */
const comparisons = new Map<Table, string>();

/** Returns the tally that an upsert of the rows would have, without writing anything. */
export function upsertTally(
  prepare: Prepare,
  table: Table,
  organisation: OrganisationNumber,
  rows: readonly Row[],
): Tally {
  const sql = comparisons.get(table) ?? compareSql(table);
  comparisons.set(table, sql);
  const compare = prepare(sql);
  const tally = { created: 0, updated: 0, unchanged: 0 };
  for (const row of rows) {
    const values = table.columns.map(({ kind }, position) => toColumn(kind, row[position]!));
    const stored = compare.get(...values, organisation);
    if (stored === undefined) tally.created++;
    else if (stored.isReplaced === 1) tally.updated++;
    else tally.unchanged++;
  }
  return tally;
}
