// Reads NDJSON: one JSON value from each line. Blank lines are skipped.

import { type Block, LineReader, LONGEST_RECORD_BYTES, type ReadBlock } from './line-reader.ts';
import { beginsAsRejected } from './rejected-form.ts';
import { Unreadable } from './source.ts';

/**
 * The maximum length of a line with a rejected record. The line also contains the errors, and the record can be six
 * times as long in JSON as it was in CSV.
 */
export const LONGEST_REJECTED_BYTES = 7 * LONGEST_RECORD_BYTES;

export class NdjsonReader extends LineReader {
  protected readonly tooLong = 'in this format each record has a line of its own';

  protected override longestBytes(start: Buffer): number {
    return beginsAsRejected(start) ? LONGEST_REJECTED_BYTES : LONGEST_RECORD_BYTES;
  }

  protected read({ text, isAscii, place }: Block): ReadBlock {
    const records: unknown[] = [];
    const lines: number[] = [];
    const ends: number[] = [];
    let { line, offset } = place;
    for (let from = 0; from < text.length; line++) {
      const lineFeed = text.indexOf('\n', from);
      const to = lineFeed === -1 ? text.length : lineFeed + 1;
      const content = text.slice(from, to);
      const end = offset + (isAscii ? to - from : Buffer.byteLength(content));
      if (content.trim() !== '') {
        const value = parsed(content);
        if (value instanceof Unreadable) {
          const broken = new Unreadable(`the line is not JSON: ${value.reason}`, line);
          return { records, lines, ends, place: { offset, line }, broken };
        }
        records.push(value);
        lines.push(line);
        ends.push(end);
      }
      offset = end;
      from = to;
    }
    return { records, lines, ends, place: { offset, line }, broken: null };
  }
}

const QUOTED_CHARACTERS = 60;

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    // V8's quote of the text around the error is removed, because a line may be very long.
    const reason = (error as SyntaxError).message.replace(/, (?:\.\.\.)?".*$| in JSON at position.*$/s, '');
    const start = json.trim();
    const shown = start.length > QUOTED_CHARACTERS ? `${start.slice(0, QUOTED_CHARACTERS)}…` : start;
    return new Unreadable(`${reason}; it begins with ${shown.replaceAll(/\s+/g, ' ')}`);
  }
}
