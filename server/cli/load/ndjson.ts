// Reads one JSON value from each line; blank lines are skipped.

import {
  type Chunk,
  LONGEST_RECORD_BYTES,
  LONGEST_REJECTED_BYTES,
  mebibytes,
  type Place,
  type Reader,
} from './chunk.ts';
import { type Block, LineBlocks } from './line-blocks.ts';
import { beginsAsRejected } from './rejected-form.ts';
import { type Source, Unreadable } from './source.ts';

export class NdjsonReader implements Reader {
  readonly #blocks: LineBlocks;
  #isDone = false;

  constructor(source: Source, place: Place) {
    this.#blocks = new LineBlocks(source, place, longestBytes);
  }

  async next(): Promise<Chunk | null> {
    while (!this.#isDone) {
      const block = await this.#blocks.next();
      const { chunk, lines } = chunkOf(block);
      this.#blocks.use(chunk.bytes.length, lines);
      const broken = chunk.broken ?? this.#tooLong(block);
      this.#isDone = block.isLast || broken !== null;
      if (chunk.bytes.length > 0 || broken !== null) return { ...chunk, broken };
    }
    return null;
  }

  #tooLong({ text, place }: Block): Unreadable | null {
    if (text !== '' || !this.#blocks.isTooLong) return null;
    const longest = mebibytes(this.#blocks.longestBytes);
    return new Unreadable(
      `the line is longer than ${longest}; in this format each record has a line of its own`,
      place.line,
    );
  }
}

function longestBytes(line: Buffer): number {
  return beginsAsRejected(line) ? LONGEST_REJECTED_BYTES : LONGEST_RECORD_BYTES;
}

function chunkOf(block: Block): { readonly chunk: Chunk; readonly lines: number } {
  const { text, isAscii, bytes, place } = block;
  const records: unknown[] = [];
  const lines: number[] = [];
  const ends: number[] = [];
  let broken: Unreadable | null = null;
  let line = place.line;
  let offset = place.offset;
  for (let from = 0; from < text.length; ) {
    const lineFeed = text.indexOf('\n', from);
    const to = lineFeed === -1 ? text.length : lineFeed + 1;
    const content = text.slice(from, to);
    const after = offset + (isAscii ? to - from : Buffer.byteLength(content));
    if (!isBlank(content)) {
      const value = parsed(content);
      if (value instanceof Unparsable) {
        broken = new Unreadable(`the line is not JSON: ${value.reason}`, line);
        break;
      }
      records.push(value);
      lines.push(line);
      ends.push(after);
    }
    offset = after;
    line++;
    from = to;
  }
  const used = bytes.subarray(0, offset - place.offset);
  return {
    chunk: { records, lines, ends, bytes: used, start: place.offset, broken: broken ?? block.broken },
    lines: line - place.line,
  };
}

export class Unparsable {
  readonly reason: string;
  constructor(reason: string) {
    this.reason = reason;
  }
}

const QUOTED_CHARACTERS = 60;

export function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    // The engine quotes the text around the mistake, of which a line may have very much.
    const reason = (error as SyntaxError).message.replace(/, (?:\.\.\.)?".*$| in JSON at position.*$/s, '');
    const start = json.trim();
    const shown = start.length > QUOTED_CHARACTERS ? `${start.slice(0, QUOTED_CHARACTERS)}…` : start;
    return new Unparsable(`${reason}; it begins with ${shown.replaceAll(/\s+/g, ' ')}`);
  }
}

function isBlank(line: string): boolean {
  const first = line.charCodeAt(0);
  // Nearly every line begins with its value; only the others are worth a closer look.
  return first <= 0x20 && line.trim() === '';
}
