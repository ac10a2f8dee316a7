// How rows reach a table: each is inserted, merged into the one that is there, or found to be there as it is.

import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import type { ColumnValue } from '@headgate/catalogue/kinds/kind.ts';
import type { OrganisationNumber, Tally } from '../rows.ts';
import { quoted, quotedList, type Table } from '../tables.ts';
import { codecs } from './codecs.ts';
import { DifferingRows } from './differing-rows.ts';
import { type JsonRow, type PackedSlice, rowsIn } from './packed-rows.ts';

export interface Upserts {
  /** No key occurs twice in it: rows may be compared before any of them is written. */
  slice(table: Table, organisation: OrganisationNumber, slice: PackedSlice): Tally;
  row(table: Table, organisation: OrganisationNumber, row: JsonRow): Tally;
}

interface TableUpserts {
  readonly insert: StatementSync;
  readonly merge: StatementSync;
  readonly differing: DifferingRows;
  /** Whose last slice was mostly there already, as the next one will be then. */
  readonly repeating: Set<OrganisationNumber>;
}

const NO_ROWID = -1;
/**
 * Where more rows than these differ, looking for them takes longer than it saves. Rows that are only written in another
 * way count, too: those with numbers that SQLite writes differently are compared in vain in every second slice.
 */
const FEW_SHARE = 0.25;

export function createUpserts(database: DatabaseSync): Upserts {
  database.exec('CREATE TEMP TABLE no_rowid (rowid INTEGER PRIMARY KEY)');
  const forgetLastRowid = database.prepare(`INSERT OR REPLACE INTO no_rowid VALUES (${NO_ROWID})`);

  const prepared = new Map<Table, TableUpserts>();
  const upsertsInto = (table: Table): TableUpserts => {
    const known = prepared.get(table) ?? {
      insert: database.prepare(`${insertSql(table)} ON CONFLICT DO NOTHING`),
      merge: database.prepare(`${insertSql(table)} ${mergeSql(table)}`),
      differing: new DifferingRows(database, table),
      repeating: new Set(),
    };
    prepared.set(table, known);
    return known;
  };

  /**
   * Rows mostly come all new or all known. A bare insert takes two thirds of the time of one that is ready to
   * merge, which prepares for being undone halfway, so that is for rows that follow one that was there.
   */
  const upsertAll = (
    { insert, merge }: TableUpserts,
    organisation: OrganisationNumber,
    rows: readonly SQLInputValue[][],
  ): Pick<Tally, 'created' | 'updated'> => {
    let created = 0;
    let updated = 0;
    let wasThere = false;
    // A merge leaves the last inserted rowid as it is, unless it had to insert. Before the first merge of a call that has
    // inserted nothing it is set to one that no row has: it may be of another table, or of a dry run that was undone.
    let lastRowid: number | bigint | null = null;
    for (const row of rows) {
      if (!wasThere) {
        const { changes, lastInsertRowid } = insert.run(...row, organisation);
        if (changes !== 0) {
          lastRowid = lastInsertRowid;
          created++;
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
    }
    return { created, updated };
  };

  return {
    slice(table, organisation, slice) {
      const upserts = upsertsInto(table);
      const { differing, repeating } = upserts;
      const places = repeating.has(organisation) ? differing.placesIn(slice, organisation) : null;
      if (places?.length === 0) return { created: 0, updated: 0, unchanged: slice.rowCount };
      const all = bindable(table, rowsIn(slice));
      const rows = places === null ? all : places.map((place) => all[place]!);
      const { created, updated } = upsertAll(upserts, organisation, rows);
      const others = places?.length ?? created + updated;
      if (others <= slice.rowCount * FEW_SHARE) repeating.add(organisation);
      else repeating.delete(organisation);
      return { created, updated, unchanged: slice.rowCount - created - updated };
    },

    row(table, organisation, row) {
      const { created, updated } = upsertAll(upsertsInto(table), organisation, bindable(table, [row]));
      return { created, updated, unchanged: 1 - created - updated };
    },
  };
}

/** Returns the same rows, converted in place to what the columns have. */
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

/** Parameters: the fields in order, then the organisation. Not numbered: each binding would look up its number. */
function insertSql({ name, columns }: Table): string {
  const names = columns.map((column) => column.name);
  return `INSERT INTO ${quoted(name)} (${quotedList(names)}, "organisation")
    VALUES (${names.map(() => '?').join(', ')}, ?)`;
}

/** Changes a row only where it differs and the incoming one is not older. */
function mergeSql({ key, columns }: Table): string {
  const values = columns.filter(({ name }) => name !== key).map(({ name }) => quoted(name));
  const isNotOlder = values.includes('"updated"')
    ? '("updated" IS NULL OR excluded."updated" IS NULL OR excluded."updated" >= "updated") AND'
    : '';
  return `ON CONFLICT ("organisation", ${quoted(key)}) DO UPDATE
    SET ${values.map((column) => `${column} = excluded.${column}`).join(', ')}
    WHERE ${isNotOlder} (${values.map((column) => `${column} IS NOT excluded.${column}`).join(' OR ')})`;
}
