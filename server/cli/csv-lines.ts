// Writes the lines of a CSV file as RFC 4180 describes them, but ended by a bare line feed, as the tools of a command
// line expect. A cell with nothing in it is an absent value; a text of no characters is written as "".

export type CsvValue = string | number | boolean | null;

const mustBeQuoted = /[",\r\n]/;

/** One line with its end; the names of the columns make the header. */
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

/** What a spreadsheet takes for the start of a formula, in some of its languages also as full-width characters. */
const formulaStart = /^[=+\-@\t\r\n＝＋－＠]/;

/**
 * Returns the value as a spreadsheet can open it without running it: an apostrophe makes a text of what begins like a
 * formula. A number needs none, negative or not.
 */
export function spreadsheetSafe(value: CsvValue): CsvValue {
  return typeof value === 'string' && formulaStart.test(value) ? `'${value}` : value;
}

function textCell(text: string): string {
  return text === '' || mustBeQuoted.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
