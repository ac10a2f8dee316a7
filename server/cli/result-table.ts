// Lays out the result of a query as a table that fits a terminal: numbers are aligned right, long values are cut, and
// columns for which there is no room are left out.

import type { SqlColumn, SqlResult } from '@headgate/client/client.ts';
import { printable } from '../printable.ts';
import { cutTo, shownWidth } from './shown-width.ts';

export interface ResultTable {
  readonly lines: readonly string[];
  /** The names of the columns for which there is no room. */
  readonly leftOut: readonly string[];
  /** Whether a value or a name is cut. */
  readonly isCut: boolean;
}

interface Column {
  readonly name: string;
  readonly cells: readonly string[];
  readonly isNumber: boolean;
  readonly isCut: boolean;
  /** The width of the longest cell. */
  readonly wanted: number;
  /** Numbers and dates are not cut, because what is left of them would look like another value. */
  readonly least: number;
}

const GAP = '  ';
/** Even without a terminal, one long text must not make every line as long. */
const WIDEST_CELL = 500;
const LEAST_WIDTH = 8;
const numberType = /^(?:U?(?:TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(.*\)|BIGNUM)$/;

/** Lays out a table for a terminal of the width, or without a limit if there is none. */
export function resultTable(
  { columns, rows }: Pick<SqlResult, 'columns' | 'rows'>,
  width: number | undefined,
): ResultTable {
  const most = Math.max(width ?? Number.POSITIVE_INFINITY, LEAST_WIDTH);
  const all = columns.map((column, at) =>
    columnOf(
      column,
      rows.map((row) => row[at]),
    ),
  );
  const shown = all.slice(0, fitting(all, most));
  const limit = widthLimit(shown, most);
  const parts = shown.map((column) =>
    linesOf(column, Math.max(column.least, Math.min(column.wanted, limit))),
  );
  const lineCount = rows.length + 2;
  return {
    lines: Array.from({ length: lineCount }, (_, line) =>
      parts
        .map(({ lines }) => lines[line]!)
        .join(GAP)
        .trimEnd(),
    ),
    leftOut: all.slice(shown.length).map(({ name }) => name),
    isCut: [...shown, ...parts].some(({ isCut }) => isCut),
  };
}

function columnOf({ name, type }: SqlColumn, values: readonly unknown[]): Column {
  const whole = values.map(cellOf);
  const cells = whole.map((cell) => cutTo(cell, WIDEST_CELL));
  const isNumber = numberType.test(type);
  const shownName = printable(name);
  let wanted = shownWidth(shownName);
  for (const cell of cells) wanted = Math.max(wanted, shownWidth(cell));
  return {
    name: shownName,
    cells,
    isNumber,
    isCut: cells.some((cell, at) => cell !== whole[at]),
    wanted,
    least: isNumber || type === 'DATE' ? wanted : Math.min(wanted, LEAST_WIDTH),
  };
}

function cellOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  return printable(typeof value === 'string' ? value : JSON.stringify(value));
}

/** Returns how many of the first columns fit with their least widths. At least one is shown. */
function fitting(columns: readonly Column[], most: number): number {
  let width = 0;
  for (const [at, { least }] of columns.entries()) {
    width += least + (at === 0 ? 0 : GAP.length);
    if (width > most && at > 0) return at;
  }
  return columns.length;
}

/** Returns the largest width up to which the columns may be as wide as they want, so that they fit together. */
function widthLimit(columns: readonly Column[], most: number): number {
  const room = most - GAP.length * (columns.length - 1);
  const total = (limit: number): number =>
    columns.reduce((sum, { wanted, least }) => sum + Math.max(least, Math.min(wanted, limit)), 0);
  let limit = Math.max(...columns.map(({ wanted }) => wanted));
  while (limit > LEAST_WIDTH && total(limit) > room) limit--;
  return limit;
}

function linesOf(
  { name, cells, isNumber }: Column,
  width: number,
): { readonly lines: readonly string[]; readonly isCut: boolean } {
  let isCut = false;
  const padded = (text: string): string => {
    const cut = cutTo(text, width);
    if (cut !== text) isCut = true;
    const space = ' '.repeat(Math.max(0, width - shownWidth(cut)));
    return isNumber ? space + cut : cut + space;
  };
  return { lines: [padded(name), '─'.repeat(width), ...cells.map(padded)], isCut };
}
