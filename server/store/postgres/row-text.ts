// Converts rows to and from what PostgreSQL reads and writes.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ColumnValue, KindName } from '@headgate/catalogue/kinds/kind.ts';
import type { OrganisationNumber, Row } from '../rows.ts';
import { type Column, quoted, type Table } from '../tables.ts';
import { codecs } from './codecs.ts';
import type { TextRow } from './connections.ts';

export function selectedColumn({ name, kind }: Column): string {
  return codecs[kind].selectSql(quoted(name));
}

export function rowOf({ columns }: Table, values: TextRow): Row {
  return columns.map(({ kind }, position): ColumnValue => {
    const text = values[position]!;
    return text === null ? null : codecs[kind].fromText(text);
  });
}

/**
 * Returns one column of the rows as a PostgreSQL array. node-postgres would take three times as long for this, because
 * it has to check the type of each value.
 */
export function arrayOf(rows: readonly Row[], position: number, kind: KindName): Promise<string | Buffer> {
  const values = rows.map((row) => row[position]!);
  const { type, toText } = codecs[kind];
  return type === codecs.text.type ? textArray(values as (string | null)[]) : plainArray(values, toText);
}

/** Returns an array of values that need no escapes. */
async function plainArray(
  values: readonly ColumnValue[],
  toText: (value: ColumnValue) => string,
): Promise<string> {
  return `{${values.map((value) => (value === null ? 'NULL' : toText(value))).join(',')}}`;
}

/** The number that PostgreSQL gives the type `text`. */
const TEXT_TYPE = 25;
const ARRAY_HEAD_BYTES = 20;
const LENGTH_BYTES = 4;
const NULL_LENGTH = -1;

/**
 * Returns an array of texts in PostgreSQL's binary format. It needs no escapes and no string of all texts, which would
 * take several times the memory.
 */
async function textArray(texts: readonly (string | null)[]): Promise<Buffer> {
  const lengths = texts.map((text) => (text === null ? NULL_LENGTH : Buffer.byteLength(text)));
  const textBytes = lengths.reduce((sum, length) => sum + LENGTH_BYTES + Math.max(length, 0), 0);
  const array = Buffer.allocUnsafeSlow(ARRAY_HEAD_BYTES + textBytes);
  const [dimensions, hasNulls, firstIndex] = [1, lengths.includes(NULL_LENGTH) ? 1 : 0, 1];
  let at = 0;
  for (const number of [dimensions, hasNulls, TEXT_TYPE, texts.length, firstIndex]) {
    at = array.writeInt32BE(number, at);
  }
  let stepEnd = STEP_CHARACTERS;
  for (const [position, text] of texts.entries()) {
    at = array.writeInt32BE(lengths[position]!, at);
    if (text !== null) at += array.write(text, at);
    if (at < stepEnd) continue;
    await nextTurn();
    stepEnd = at + STEP_CHARACTERS;
  }
  return array;
}

const specialToCopy = /[\\\t\n\r]/;

/**
 * Replaces one character after the other. If most characters match, a single pattern for all of them takes about twice
 * as long.
 */
function escapedInCopy(text: string): string {
  if (!specialToCopy.test(text)) return text;
  return text.replace(/\\/g, '\\\\').replace(/\t/g, '\\t').replace(/\n/g, '\\n').replace(/\r/g, '\\r');
}

/** After this many characters, which take up to 50 ms if most of them need an escape, the thread does other work. */
const STEP_CHARACTERS = 1024 * 1024;

/**
 * Returns the rows in the text format of COPY. Each row begins with the organisation. A string of all rows would take
 * several times the memory.
 */
export async function copyTextOf(
  { columns }: Table,
  organisation: OrganisationNumber,
  rows: readonly Row[],
): Promise<Buffer> {
  const encoders = columns.map(({ kind }): ((value: ColumnValue) => string) => {
    const { toText, needsEscapes } = codecs[kind];
    return needsEscapes ? (value) => escapedInCopy(toText(value)) : toText;
  });
  const parts: Buffer[] = [];
  let text = '';
  for (const row of rows) {
    text += organisation;
    for (let position = 0; position < encoders.length; position++) {
      const value = row[position]!;
      text += value === null ? '\t\\N' : `\t${encoders[position]!(value)}`;
    }
    text += '\n';
    if (text.length < STEP_CHARACTERS) continue;
    parts.push(Buffer.from(text));
    text = '';
    await nextTurn();
  }
  return Buffer.concat([...parts, Buffer.from(text)]);
}
