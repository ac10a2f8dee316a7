// Writes a text as a cell of CSV as in RFC 4180. An empty text is "", because an empty cell is null.

const mustBeQuoted = /[",\r\n]/;

export function csvCell(text: string): string {
  return text === '' || mustBeQuoted.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Characters that start a formula in spreadsheets. In some languages these include the full-width forms. */
const formulaStart = /^[=+\-@\t\r\n＝＋－＠]/;

/**
 * Returns a text with an apostrophe before it if a spreadsheet would run it as a formula. Numbers need none, even
 * negative ones.
 */
export function spreadsheetSafe(text: string): string {
  return formulaStart.test(text) ? `'${text}` : text;
}
