// Writes CSV lines as in RFC 4180, but with line feeds instead of CRLF, as command-line tools expect. Null is written
// as an empty cell, an empty string as "".

import { csvCell } from '../csv-cell.ts';

export type CsvValue = string | number | boolean | null;

/** Returns one line, including its line feed. For the column names it returns the header. */
export function csvLine(values: readonly CsvValue[]): string {
  let line = '';
  for (let column = 0; column < values.length; column++) {
    if (column > 0) line += ',';
    const value = values[column]!;
    if (value === null) continue;
    line += typeof value === 'string' ? csvCell(value) : String(value);
  }
  return `${line}\n`;
}
