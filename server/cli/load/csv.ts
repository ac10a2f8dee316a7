// Reads CSV as RFC 4180 describes it, with line feeds or CRLF, and types its cells by the catalogue. Fast, because a
// load waits for it: text is searched, not walked through character by character, and only quoted cells are looked
// at closely.

import type { Fields } from '@headgate/catalogue/declaration.ts';
import type { KindName } from '@headgate/catalogue/kinds/kind.ts';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { jsonText } from '@headgate/client/json-text.ts';
import { type Chunk, LONGEST_RECORD_BYTES, mebibytes, type Place, type Reader } from './chunk.ts';
import { type Block, LineBlocks } from './line-blocks.ts';
import { type Source, Unreadable } from './source.ts';

/** Null is a cell with nothing in it, '' one of two quotes with nothing between them. */
type Cell = string | null;

type Typing = 'text' | 'number' | 'boolean' | 'timestamp' | 'plain';

export interface Column {
  readonly name: string;
  readonly typing: Typing;
  /** What a JSON object has before the value, the quote of a text included. */
  readonly jsonOpening: string;
}

const typings: Readonly<Partial<Record<KindName, Typing>>> = {
  text: 'text',
  number: 'number',
  boolean: 'boolean',
  'event-timestamp': 'timestamp',
};

/** A name that is no field is a column of text: the server says what it thinks of it. */
export function columnsOf(header: readonly string[], fields: Fields): readonly Column[] {
  return header.map((name) => {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    const typing = (field && typings[field.kind.name]) ?? 'plain';
    const isText = typing === 'text' || typing === 'plain';
    return { name, typing, jsonOpening: `${JSON.stringify(name)}:${isText ? '"' : ''}` };
  });
}

/** The names in the first line; and where the records begin. */
export async function readHeader(
  source: Source,
): Promise<{ readonly names: readonly string[]; readonly place: Place } | Unreadable> {
  const blocks = new LineBlocks(source, { offset: 0, line: 1 });
  for (;;) {
    const block = await blocks.next();
    const rows = new Rows(block);
    if (rows.next()) {
      const names = cellsIn(rows.text, rows.isQuoted).map((cell) => cell ?? '');
      return { names, place: { offset: rows.endOffset, line: rows.nextLine } };
    }
    const broken = rows.broken ?? block.broken ?? tooLong(blocks, 1);
    if (broken !== null) return broken;
    if (block.isLast) return new Unreadable('it is empty: a CSV file begins with a line of column names', 1);
  }
}

/**
 * A record that is still its line: many are held while they are under way, and a line takes a seventh of the memory
 * of its values. Asked for its JSON, it becomes the record.
 */
class CsvRecord {
  readonly #text: string;
  readonly #isQuoted: boolean;
  readonly #columns: readonly Column[];

  constructor(text: string, isQuoted: boolean, columns: readonly Column[]) {
    this.#text = text;
    this.#isQuoted = isQuoted;
    this.#columns = columns;
  }

  static cellOf(record: CsvRecord, place: number): Cell {
    return cellsIn(record.#text, record.#isQuoted, place + 1)[place]!;
  }

  [jsonText](): string {
    const isPlain = !this.#isQuoted && !needsEscape.test(this.#text);
    return isPlain ? jsonOfPlainRow(this.#columns, this.#text) : JSON.stringify(this.toJSON());
  }

  toJSON(): Record<string, unknown> {
    return typed(this.#columns, cellsIn(this.#text, this.#isQuoted));
  }
}

/** With a property for the key only, for which whoever sends records may ask: columns may have any name. */
function recordClassOf(columns: readonly Column[], key: string | null): typeof CsvRecord {
  class Keyed extends CsvRecord {}
  const place = columns.findIndex(({ name }) => name === key);
  if (key !== null && place !== -1) {
    Object.defineProperty(Keyed.prototype, key, {
      get(this: CsvRecord) {
        return CsvRecord.cellOf(this, place);
      },
    });
  }
  return Keyed;
}

export class CsvReader implements Reader {
  readonly #blocks: LineBlocks;
  readonly #columns: readonly Column[];
  readonly #Record: typeof CsvRecord;
  #isDone = false;

  /** The key is the name of the column that identifies a record, where there is one. */
  constructor(source: Source, place: Place, columns: readonly Column[], key: string | null) {
    this.#blocks = new LineBlocks(source, place);
    this.#columns = columns;
    this.#Record = recordClassOf(columns, key);
  }

  async next(): Promise<Chunk | null> {
    while (!this.#isDone) {
      const block = await this.#blocks.next();
      const rows = new Rows(block);
      const chunk = this.#chunkOf(block, rows);
      this.#blocks.use(rows.endOffset - block.place.offset, rows.nextLine - block.place.line);
      const broken =
        chunk.broken ?? (chunk.bytes.length === 0 ? tooLong(this.#blocks, block.place.line) : null);
      this.#isDone = block.isLast || broken !== null;
      if (chunk.bytes.length > 0 || broken !== null) return { ...chunk, broken };
    }
    return null;
  }

  #chunkOf(block: Block, rows: Rows): Chunk {
    const records: unknown[] = [];
    const lines: number[] = [];
    const ends: number[] = [];
    let broken: Unreadable | null = null;
    const columns = this.#columns;
    while (rows.next()) {
      if (rows.count !== columns.length) {
        broken = new Unreadable(cellCount(rows.count, columns.length), rows.line);
        rows.takeBack();
        break;
      }
      records.push(new this.#Record(rows.text, rows.isQuoted, columns));
      lines.push(rows.line);
      ends.push(rows.endOffset);
    }
    return {
      records,
      lines,
      ends,
      bytes: block.bytes.subarray(0, rows.endOffset - block.place.offset),
      start: block.place.offset,
      broken: broken ?? rows.broken ?? block.broken,
    };
  }
}

function cellCount(count: number, columns: number): string {
  const hint = count > columns ? '; a text with a comma in it needs quotes around it' : '';
  return `the line has ${count} ${count === 1 ? 'cell' : 'cells'}, and the header ${columns}${hint}`;
}

function tooLong(blocks: LineBlocks, line: number): Unreadable | null {
  if (!blocks.isTooLong) return null;
  return new Unreadable(
    `the record that begins here is longer than ${mebibytes(LONGEST_RECORD_BYTES)}; is a closing quote missing?`,
    line,
  );
}

/** The rows of a block, one after the other; blank lines are none. */
class Rows {
  readonly #block: Block;
  /** The row without the end of its line. */
  text = '';
  isQuoted = false;
  /** How many cells it has. */
  count = 0;
  /** The line in which the row begins. */
  line: number;
  nextLine: number;
  /** The offset in the file after the row. */
  endOffset: number;
  broken: Unreadable | null = null;
  #at = 0;
  /** Where the next of each is; behind `#at` it must be searched anew. */
  #comma = -1;
  #quote = -1;
  #before: { readonly line: number; readonly offset: number };

  constructor(block: Block) {
    this.#block = block;
    this.line = block.place.line;
    this.nextLine = this.line;
    this.endOffset = block.place.offset;
    this.#before = { line: this.line, offset: this.endOffset };
  }

  /** False where no whole row is left. */
  next(): boolean {
    const { text, isLast } = this.#block;
    while (this.#at < text.length) {
      const lineFeed = text.indexOf('\n', this.#at);
      if (lineFeed === -1 && !isLast) return false;
      const end = withoutReturn(text, lineFeed === -1 ? text.length : lineFeed);
      const after = lineFeed === -1 ? text.length : lineFeed + 1;
      if (end <= this.#at) {
        this.#advance(after, 1);
        continue;
      }
      if (this.#quote < this.#at) this.#quote = foundOrEnd(text, '"', this.#at);
      this.line = this.nextLine;
      this.isQuoted = this.#quote < end;
      if (this.isQuoted) return this.#quotedRow();
      this.count = this.#commasUpTo(end) + 1;
      this.text = text.slice(this.#at, end);
      this.#advance(after, 1);
      return true;
    }
    return false;
  }

  /** The last row counts as not read. */
  takeBack(): void {
    this.nextLine = this.#before.line;
    this.endOffset = this.#before.offset;
  }

  #advance(to: number, lines: number): void {
    this.#before = { line: this.nextLine, offset: this.endOffset };
    const { text, isAscii } = this.#block;
    this.endOffset += isAscii ? to - this.#at : Buffer.byteLength(text.slice(this.#at, to));
    this.#at = to;
    this.nextLine += lines;
  }

  #commasUpTo(end: number): number {
    const { text } = this.#block;
    let count = 0;
    if (this.#comma < this.#at) this.#comma = foundOrEnd(text, ',', this.#at);
    while (this.#comma < end) {
      count++;
      this.#comma = foundOrEnd(text, ',', this.#comma + 1);
    }
    return count;
  }

  /** A row of which a cell is quoted may go over several lines. */
  #quotedRow(): boolean {
    const { text, isLast } = this.#block;
    let from = this.#at;
    // Searched once and not for every cell: a row may have as many cells as bytes.
    let lineFeed = -1;
    for (let count = 1; ; count++) {
      let to: number;
      if (text[from] === '"') {
        const closing = closingQuote(text, from + 1);
        if (closing === -1) {
          if (isLast) this.#breakAt(from, 'the quote that is opened here is never closed');
          return false;
        }
        to = text.startsWith('\r\n', closing + 1) ? closing + 2 : closing + 1;
        const next = text[to];
        if (next !== undefined && next !== ',' && next !== '\n') {
          this.#breakAt(
            from,
            `the quoted cell that begins here is followed by ${quote(next)}, not by a comma or the end of the line; ` +
              'is a quote missing, or one within the text not doubled?',
          );
          return false;
        }
      } else {
        if (lineFeed < from) lineFeed = foundOrEnd(text, '\n', from);
        to = Math.min(foundOrEnd(text, ',', from), lineFeed);
      }
      if (text[to] !== ',') {
        this.count = count;
        this.text = text.slice(this.#at, withoutReturn(text, to));
        const after = Math.min(to + 1, text.length);
        this.#advance(after, Math.max(1, lineFeedsIn(text, this.#at, after)));
        return true;
      }
      from = to + 1;
    }
  }

  #breakAt(place: number, reason: string): void {
    const line = this.nextLine + lineFeedsIn(this.#block.text, this.#at, place);
    this.broken = new Unreadable(reason, line);
  }
}

/** The cells of a row that is known to be whole; the first few where no more are asked for. */
function cellsIn(row: string, isQuoted: boolean, most = Number.POSITIVE_INFINITY): readonly Cell[] {
  const cells: Cell[] = [];
  for (let from = 0; from <= row.length && cells.length < most; ) {
    const isOpened = isQuoted && row[from] === '"';
    const closing = isOpened ? closingQuote(row, from + 1) : 0;
    const to = isOpened ? closing + 1 : foundOrEnd(row, ',', from);
    if (isOpened) {
      const content = row.slice(from + 1, closing);
      cells.push(content.includes('"') ? content.replaceAll('""', '"') : content);
    } else {
      cells.push(to === from ? null : row.slice(from, to));
    }
    from = to + 1;
  }
  return cells;
}

function withoutReturn(text: string, end: number): number {
  return text.charCodeAt(end - 1) === 0x0d ? end - 1 : end;
}

function foundOrEnd(text: string, sought: string, from: number): number {
  const found = text.indexOf(sought, from);
  return found === -1 ? text.length : found;
}

function closingQuote(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at !== -1; at = text.indexOf('"', at + 2)) {
    if (text[at + 1] !== '"') return at;
  }
  return -1;
}

function lineFeedsIn(text: string, from: number, to: number): number {
  let count = 0;
  for (let at = text.indexOf('\n', from); at !== -1 && at < to; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

/** A record of the cells that hold something. What cannot be typed stays text, for the server to name. */
function typed(columns: readonly Column[], cells: readonly Cell[]): Record<string, unknown> {
  // Without a prototype even __proto__ is a name like others.
  const record = Object.create(null) as Record<string, unknown>;
  for (let place = 0; place < columns.length; place++) {
    const cell = cells[place]!;
    if (cell === null) continue;
    const { name, typing } = columns[place]!;
    if (typing === 'text') record[name] = cell;
    else if (cell !== '') record[name] = typing === 'plain' ? cell : typedCell(typing, cell);
  }
  return record;
}

/** What a JSON text may not hold as it is; quotes apart, without which a row is not quoted. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const needsEscape = /[\\\u0000-\u001f]/;
/** Digits that mean the same to JSON as to `Number`, and few enough to be a finite number. */
const jsonNumber = /^(?:0|-?[1-9]\d{0,14})(?:\.\d{1,15})?$/;

/** Means the same as the JSON of `typed`, put together from the text: half of a load's work would else be objects. */
function jsonOfPlainRow(columns: readonly Column[], row: string): string {
  let json = '';
  let before = '{';
  let from = 0;
  for (const { typing, jsonOpening } of columns) {
    const to = foundOrEnd(row, ',', from);
    if (to > from) {
      const cell = row.slice(from, to);
      const isText = typing === 'text' || typing === 'plain';
      json += before + jsonOpening;
      json += isText ? cell : jsonOfCell(typing, cell);
      before = isText ? '",' : ',';
    }
    from = to + 1;
  }
  return `${json === '' ? before : json + before.slice(0, -1)}}`;
}

function jsonOfCell(typing: 'number' | 'boolean' | 'timestamp', cell: string): string {
  const isJson = typing === 'number' ? jsonNumber.test(cell) : typing === 'boolean' && isBoolean(cell);
  return isJson ? cell : JSON.stringify(typedCell(typing, cell));
}

function isBoolean(cell: string): boolean {
  return cell === 'true' || cell === 'false';
}

const numberForm = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
const integerForm = /^\d{1,16}$/;

function typedCell(typing: 'number' | 'boolean' | 'timestamp', cell: string): unknown {
  if (typing === 'boolean') {
    const word = cell.toLowerCase();
    return word === 'true' ? true : word === 'false' ? false : cell;
  }
  if (!(typing === 'number' ? numberForm : integerForm).test(cell)) return cell;
  const value = Number(cell);
  return Number.isFinite(value) ? value : cell;
}
