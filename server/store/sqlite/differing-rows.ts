// Which rows of a slice are not stored as they are. It is compared as the text it came in, by SQLite alone, in two
// thirds of the time that it takes to parse it and to compare value by value.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { OrganisationNumber } from '../rows.ts';
import { quoted, type Table } from '../tables.ts';
import { codecs } from './codecs.ts';
import type { PackedSlice } from './packed-rows.ts';

export class DifferingRows {
  readonly #find: StatementSync | null;

  constructor(database: DatabaseSync, table: Table) {
    this.#find = writesNumbersInFull(database) ? database.prepare(findSql(table)) : null;
  }

  /**
   * May name a row that is there as it is, where SQLite writes one of its values in another way; never leaves out one
   * that is not. Null where that cannot be told.
   */
  placesIn({ bytes }: PackedSlice, organisation: OrganisationNumber): readonly number[] | null {
    return this.#find?.all(bytes, organisation).map(({ place }) => place as number) ?? null;
  }
}

/** Parameters: the bytes of the slice, then the organisation. */
function findSql({ name, key, columns }: Table): string {
  // A row begins with its key, a UUID. Any other key would not be found like this, and its row be taken as differing.
  return `SELECT "given"."key" AS "place" FROM json_each(CAST(? AS TEXT)) AS "given"
    LEFT JOIN ${quoted(name)} AS "stored"
      ON "stored"."organisation" = ? AND "stored".${quoted(key)} = substr("given"."value", 3, 36)
    WHERE json_array(${columns.map(({ name, kind }) => codecs[kind].jsonSql(`"stored".${quoted(name)}`)).join(', ')}) IS NOT "given"."value"`;
}

/** A SQLite that cuts numbers to 15 digits would write two different ones as the same text. */
function writesNumbersInFull(database: DatabaseSync): boolean {
  const written = database.prepare('SELECT json_array(0.1 + 0.2) AS "json"').get();
  return written?.json === JSON.stringify([0.1 + 0.2]);
}
