// Converts rows to and from the text that PostgreSQL reads and writes.

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

type Encode = (value: ColumnValue) => string;

function encoderOf(kind: KindName, escaped: (text: string) => string): Encode {
  const { toText, needsEscapes } = codecs[kind];
  return needsEscapes ? (value) => escaped(toText(value)) : toText;
}

const special = /["\\]/;

/**
 * Replaces one character after the other. If most characters match, a single pattern for all of them takes about twice
 * as long.
 */
function escapedInArray(text: string): string {
  return `"${special.test(text) ? text.replace(/\\/g, '\\\\').replace(/"/g, '\\"') : text}"`;
}

/**
 * Returns one column of the rows as the text of a PostgreSQL array. node-postgres would take three times as long for
 * this, because it has to check the type of each value.
 */
export async function arrayOf(rows: readonly Row[], position: number, kind: KindName): Promise<string> {
  const encode = encoderOf(kind, escapedInArray);
  let separator = '';
  const elements = await joinedInSteps(rows, (row) => {
    const value = row[position]!;
    const element = separator + (value === null ? 'NULL' : encode(value));
    separator = ',';
    return element;
  });
  return `{${elements}}`;
}

const specialToCopy = /[\\\t\n\r]/;

function escapedInCopy(text: string): string {
  if (!specialToCopy.test(text)) return text;
  return text.replace(/\\/g, '\\\\').replace(/\t/g, '\\t').replace(/\n/g, '\\n').replace(/\r/g, '\\r');
}

/** Returns the rows in the text format of COPY. Each row begins with the organisation. */
export function copyTextOf(
  { columns }: Table,
  organisation: OrganisationNumber,
  rows: readonly Row[],
): Promise<string> {
  const encoders = columns.map(({ kind }) => encoderOf(kind, escapedInCopy));
  return joinedInSteps(rows, (row) => {
    let text = String(organisation);
    for (let position = 0; position < encoders.length; position++) {
      const value = row[position]!;
      text += value === null ? '\t\\N' : `\t${encoders[position]!(value)}`;
    }
    return `${text}\n`;
  });
}

/** After this many characters, which take up to 50 ms if most of them need an escape, the thread does other work. */
const STEP_CHARACTERS = 1024 * 1024;

async function joinedInSteps(rows: readonly Row[], textOf: (row: Row) => string): Promise<string> {
  let text = '';
  let stepEnd = STEP_CHARACTERS;
  for (const row of rows) {
    text += textOf(row);
    if (text.length < stepEnd) continue;
    await nextTurn();
    stepEnd = text.length + STEP_CHARACTERS;
  }
  return text;
}
