// Writes CSV lines as in RFC 4180, but with line feeds instead of CRLF, as command-line tools expect. Null is written
// as an empty cell, an empty string as "".

export type CsvValue = string | number | boolean | null;

const mustBeQuoted = /[",\r\n]/;

/** Returns one line, including its line feed. For the column names it returns the header. */
export function csvLine(values: readonly CsvValue[]): string {
  let line = '';
  for (let column = 0; column < values.length; column++) {
    if (column > 0) line += ',';
    const value = values[column]!;
    if (value === null) continue;
    line += typeof value === 'string' ? textCell(value) : String(value);
  }
  return `${line}\n`;
}

/** Characters that start a formula in spreadsheets. In some languages these include the full-width forms. */
const formulaStart = /^[=+\-@\t\r\n＝＋－＠]/;

/**
 * Returns a text with an apostrophe before it if a spreadsheet would run it as a formula. Returns any other value
 * unchanged: numbers are safe, even negative ones.
 */
export function spreadsheetSafe(value: CsvValue): CsvValue {
  return typeof value === 'string' && formulaStart.test(value) ? `'${value}` : value;
}

function textCell(text: string): string {
  return text === '' || mustBeQuoted.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
