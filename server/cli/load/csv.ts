// Reads CSV as in RFC 4180, with line feeds or CRLF, and converts cells to the types of the catalogue. The parser is
// written by hand, because the library csv-parse takes seven times as long (bench/NOTES.md).

import type { Fields } from '@headgate/catalogue/declaration.ts';
import type { KindName } from '@headgate/catalogue/kinds/kind.ts';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { jsonText } from '@headgate/client/slices.ts';
import { type Block, type FilePosition, LineReader, type ReadBlock } from './line-reader.ts';
import { type Source, Unreadable } from './source.ts';

type Typing = 'text' | 'number' | 'boolean' | 'timestamp' | 'plain';

export interface Column {
  readonly name: string;
  readonly typing: Typing;
  /** The text before the value in a JSON object: a comma, the quoted name and a colon. */
  readonly label: string;
}

const typings: Readonly<Partial<Record<KindName, Typing>>> = {
  text: 'text',
  number: 'number',
  boolean: 'boolean',
  'event-timestamp': 'timestamp',
};

/**
 * Returns the columns of a header. The cells of an unknown column are sent as text, and the server refuses the field,
 * or drops it if the upload is lenient.
 */
export function columnsOf(header: readonly string[], fields: Fields): readonly Column[] {
  return header.map((name) => {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    const label = `,${JSON.stringify(name)}:`;
    return { name, typing: (field && typings[field.kind.name]) ?? 'plain', label };
  });
}

interface Header {
  readonly names: readonly string[];
  /** Where the records begin. */
  readonly place: FilePosition;
}

const tooLong = 'is a closing quote missing?';

class HeaderReader extends LineReader {
  protected readonly tooLong = tooLong;
  header: Header | null = null;

  protected read(block: Block): ReadBlock {
    const rows = new Rows(block);
    const row = rows.next();
    if (row !== null) this.header = { names: cellsOf(row).map((cell) => cell ?? ''), place: rows.place };
    return { records: [], lines: [], ends: [], place: rows.place, broken: rows.broken };
  }
}

/** Resolves to the header of the file. Blank lines before the header are skipped. */
export async function readHeader(source: Source): Promise<Header | Unreadable> {
  const reader = new HeaderReader(source, { offset: 0, line: 1 });
  for (let chunk = await reader.next(); chunk !== null; chunk = await reader.next()) {
    if (reader.header !== null) return reader.header;
    if (chunk.broken !== null) return chunk.broken;
  }
  return new Unreadable('it is empty: a CSV file begins with a line of column names', 1);
}

/**
 * A record that is stored as a line of text and converted to JSON when it is sent. Many records are in memory while
 * requests run, and a line takes a seventh of the memory that the parsed values would take.
 */
class CsvRecord {
  readonly #row: Row;
  readonly #columns: readonly Column[];

  constructor(row: Row, columns: readonly Column[]) {
    this.#row = row;
    this.#columns = columns;
  }

  static cellOf(record: CsvRecord, index: number): string | null {
    return cellsOf(record.#row)[index]!;
  }

  [jsonText](): string {
    return jsonOf(this.#columns, this.#row);
  }

  toJSON(): unknown {
    return JSON.parse(this[jsonText]());
  }
}

/** Returns a class whose records have a property only for the key column. The client reads no other column. */
function recordClassOf(columns: readonly Column[], key: string | null): typeof CsvRecord {
  class KeyedRecord extends CsvRecord {}
  const index = columns.findIndex(({ name }) => name === key);
  if (key === null || index === -1) return CsvRecord;
  Object.defineProperty(KeyedRecord.prototype, key, {
    get(this: CsvRecord) {
      return CsvRecord.cellOf(this, index);
    },
  });
  return KeyedRecord;
}

export class CsvReader extends LineReader {
  protected readonly tooLong = tooLong;
  readonly #columns: readonly Column[];
  readonly #Record: typeof CsvRecord;

  /** `key` is the name of the column that identifies a record, or null if there is none. */
  constructor(source: Source, place: FilePosition, columns: readonly Column[], key: string | null) {
    super(source, place);
    this.#columns = columns;
    this.#Record = recordClassOf(columns, key);
  }

  protected read(block: Block): ReadBlock {
    const records: CsvRecord[] = [];
    const lines: number[] = [];
    const ends: number[] = [];
    const rows = new Rows(block);
    let { place } = rows;
    for (let row = rows.next(); row !== null; row = rows.next()) {
      if (rows.cellCount !== this.#columns.length) {
        const broken = new Unreadable(wrongCount(rows.cellCount, this.#columns.length), rows.line);
        return { records, lines, ends, place, broken };
      }
      records.push(new this.#Record(row, this.#columns));
      lines.push(rows.line);
      place = rows.place;
      ends.push(place.offset);
    }
    return { records, lines, ends, place: rows.place, broken: rows.broken };
  }
}

function wrongCount(count: number, columns: number): string {
  const hint = count > columns ? '; a text with a comma in it needs quotes around it' : '';
  return `the line has ${count} ${count === 1 ? 'cell' : 'cells'}, and the header ${columns}${hint}`;
}

interface Row {
  /** The text of the row without the line break at its end. */
  readonly text: string;
  readonly isQuoted: boolean;
}

/** In a row with quotes, null is an empty cell, and '' is a cell written as "". In other rows, '' is an empty cell. */
type Cells = readonly (string | null)[];

function cellsOf({ text, isQuoted }: Row): Cells {
  return isQuoted ? (quotedCells(text, 0) as QuotedCells).cells : text.split(',');
}

/** Iterates over the rows of a block. Blank lines are skipped. */
class Rows {
  readonly #block: Block;
  #index = 0;
  /** The index of the next quote in the text. It is searched for again only after `#index` has passed it. */
  #quote = -1;
  /** The position after the row that was returned last. */
  place: FilePosition;
  /** The line in which the row that was returned last begins. */
  line = 0;
  /** The number of cells in that row. */
  cellCount = 0;
  broken: Unreadable | null = null;

  constructor(block: Block) {
    this.#block = block;
    this.place = block.place;
  }

  /** Returns the next row, or null if no complete row is left. */
  next(): Row | null {
    const { text } = this.#block;
    while (this.#index < text.length) {
      if (this.#quote < this.#index) this.#quote = indexOrEnd(text, '"', this.#index);
      const lineFeed = indexOrEnd(text, '\n', this.#index);
      if (this.#quote < lineFeed) return this.#quotedRow();
      const content = text.slice(this.#index, withoutReturn(text, lineFeed));
      this.line = this.place.line;
      this.#advance(lineFeed + 1, 1);
      if (content === '') continue;
      this.cellCount = countIn(content, ',') + 1;
      return { text: content, isQuoted: false };
    }
    return null;
  }

  /** Reads a row that contains quotes, and may therefore span several lines. */
  #quotedRow(): Row | null {
    const { text, isLast } = this.#block;
    const start = this.#index;
    this.line = this.place.line;
    const found = quotedCells(text, start);
    if ('reason' in found) {
      // The closing quote may be in the next block.
      if (found.isOpen && !isLast) return null;
      this.broken = new Unreadable(found.reason, this.line + countIn(text.slice(start, found.index), '\n'));
      return null;
    }
    const content = text.slice(start, withoutReturn(text, found.end));
    this.cellCount = found.cells.length;
    this.#advance(found.end + 1, countIn(content, '\n') + 1);
    return { text: content, isQuoted: true };
  }

  #advance(to: number, lines: number): void {
    const { text, isAscii } = this.#block;
    const end = Math.min(to, text.length);
    const bytes = isAscii ? end - this.#index : Buffer.byteLength(text.slice(this.#index, end));
    this.#index = end;
    this.place = { offset: this.place.offset + bytes, line: this.place.line + lines };
  }
}

interface QuotedCells {
  readonly cells: Cells;
  /** The index of the line feed after the row, or of the end of the text. */
  readonly end: number;
}

interface QuoteProblem {
  readonly reason: string;
  /** Where the faulty cell begins. */
  readonly index: number;
  /** Whether the closing quote of that cell is missing from the text. */
  readonly isOpen: boolean;
}

/** Returns the cells, quoted or not, of the row that begins at an index. */
function quotedCells(text: string, start: number): QuotedCells | QuoteProblem {
  const cells: (string | null)[] = [];
  // The index of the next line feed. Searching for it at every cell would take quadratic time in a row with many cells.
  let lineFeed = -1;
  for (let from = start; ; ) {
    let to: number;
    if (text[from] === '"') {
      const closing = closingQuote(text, from + 1);
      if (closing === -1) {
        return { reason: 'the quote that is opened here is never closed', index: from, isOpen: true };
      }
      cells.push(text.slice(from + 1, closing).replaceAll('""', '"'));
      to = text.startsWith('\r\n', closing + 1) ? closing + 2 : closing + 1;
      const next = text[to] ?? '\n';
      if (next !== ',' && next !== '\n') {
        const reason =
          `the quoted cell that begins here is followed by ${quote(next)}, not by a comma or the end of the line; ` +
          'is a quote missing, or one within the text not doubled?';
        return { reason, index: from, isOpen: false };
      }
    } else {
      if (lineFeed < from) lineFeed = indexOrEnd(text, '\n', from);
      to = Math.min(indexOrEnd(text, ',', from), lineFeed);
      cells.push(text.slice(from, text[to] === '\n' ? withoutReturn(text, to) : to) || null);
    }
    if (text[to] !== ',') return { cells, end: to };
    from = to + 1;
  }
}

function withoutReturn(text: string, end: number): number {
  return text.charCodeAt(end - 1) === 0x0d ? end - 1 : end;
}

function indexOrEnd(text: string, sought: string, from: number): number {
  const found = text.indexOf(sought, from);
  return found === -1 ? text.length : found;
}

function closingQuote(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at !== -1; at = text.indexOf('"', at + 2)) {
    if (text[at + 1] !== '"') return at;
  }
  return -1;
}

function countIn(text: string, sought: string): number {
  let count = 0;
  for (let at = text.indexOf(sought); at !== -1; at = text.indexOf(sought, at + 1)) count++;
  return count;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression searches for control characters
const needsEscape = /[\\\u0000-\u001f]/;

/** Returns the record as a JSON object without its empty cells. A text cell written as "" becomes an empty string. */
function jsonOf(columns: readonly Column[], row: Row): string {
  if (!row.isQuoted && !needsEscape.test(row.text)) return jsonOfPlainText(columns, row.text);
  const cells = cellsOf(row);
  let json = '{';
  for (const [index, { typing, label }] of columns.entries()) {
    const cell = cells[index]!;
    if (cell === null || (cell === '' && !(row.isQuoted && typing === 'text'))) continue;
    json += (json === '{' ? label.slice(1) : label) + jsonOfCell(typing, cell);
  }
  return `${json}}`;
}

/**
 * Does the same as `jsonOf` for a row that has neither quotes nor characters to escape. Nearly all rows are of this
 * form. It takes half the time, because it makes no array of cells.
 */
function jsonOfPlainText(columns: readonly Column[], text: string): string {
  let json = '{';
  let from = 0;
  for (const { typing, label } of columns) {
    const to = indexOrEnd(text, ',', from);
    if (to > from) {
      const cell = text.slice(from, to);
      json += json === '{' ? label.slice(1) : label;
      json += typing === 'text' || typing === 'plain' ? `"${cell}"` : jsonOfCell(typing, cell);
    }
    from = to + 1;
  }
  return `${json}}`;
}

const numberForm = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
/** Matches numbers that are copied to the JSON unchanged. They have too few digits to be infinite. */
const jsonNumberForm = /^(?:0|-?[1-9]\d{0,14})(?:\.\d{1,15})?$/;
const booleanForm = /^(?:true|false)$/i;
const integerForm = /^\d{1,16}$/;

/** Returns the JSON of a cell. A cell that cannot be converted stays text, which the server refuses. */
function jsonOfCell(typing: Typing, cell: string): string {
  if (typing === 'boolean' && booleanForm.test(cell)) return cell.toLowerCase();
  if (typing === 'number' && jsonNumberForm.test(cell)) return cell;
  if ((typing === 'number' && numberForm.test(cell)) || (typing === 'timestamp' && integerForm.test(cell))) {
    if (Number.isFinite(Number(cell))) return JSON.stringify(Number(cell));
  }
  return JSON.stringify(cell);
}
