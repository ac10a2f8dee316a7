// Reads a JSON file: parses the whole file and provides it as NDJSON, one line for each element of its array. The line
// number of a record is therefore the number of its element in the array.

import { Failure } from '../../failure.ts';
import { readJson } from '../../ingest/json.ts';
import { mebibytes } from './line-reader.ts';
import { type Source, Unreadable } from './source.ts';

/** The maximum size of a JSON file. The parsed file takes about eight times its size in memory. */
const LONGEST_JSON_BYTES = 32 * 1024 * 1024;
const RECORDS_PER_BLOCK = 1000;
const noLimits = {
  containers: Number.POSITIVE_INFINITY,
  members: Number.POSITIVE_INFINITY,
  keys: Number.POSITIVE_INFINITY,
  advice: '',
};

/** Returns the file as NDJSON. If the file contains an object, `name` is the property with the array of records. */
export function jsonAsLines(source: Source, name: string): Source {
  let records: readonly unknown[] | null = null;
  let takenCount = 0;
  return {
    async next() {
      if (records === null) {
        const read = await recordsIn(source, name);
        if (read instanceof Unreadable) return read;
        records = read;
      }
      const some = records.slice(takenCount, takenCount + RECORDS_PER_BLOCK);
      takenCount += some.length;
      if (some.length === 0) return null;
      return Buffer.from(some.map((record) => `${JSON.stringify(record)}\n`).join(''));
    },
    readBytes: () => (records === null ? 0 : source.readBytes() * (takenCount / Math.max(1, records.length))),
    close: () => source.close(),
  };
}

async function recordsIn(source: Source, name: string): Promise<readonly unknown[] | Unreadable> {
  const blocks: Buffer[] = [];
  let bytes = 0;
  for (let block = await source.next(); block !== null; block = await source.next()) {
    if (block instanceof Unreadable) return block;
    bytes += block.length;
    if (bytes > LONGEST_JSON_BYTES) return tooLong(name);
    blocks.push(block);
  }
  if (bytes === 0)
    return new Unreadable('it is empty: a JSON file is an array of records, or an object with one');
  const read = readJson(Buffer.concat(blocks), noLimits);
  if (read instanceof Failure) {
    const reason = read.reason
      .replace(/^The body/, 'it')
      .replace(/\.$/, '')
      .replaceAll(/\s+/g, ' ');
    // V8's message either names the line or quotes the text around the error. In the second case the line is unknown.
    const line = /\(line (\d+) column \d+\)/.exec(reason)?.[1];
    return new Unreadable(`${reason}; ${ndjsonHint}`, line === undefined ? null : Number(line));
  }
  const { value } = read;
  const array = Array.isArray(value) ? value : (value as Record<string, unknown> | null)?.[name];
  if (Array.isArray(array)) return array;
  return new Unreadable(
    `it is neither an array of records nor an object with such an array under "${name}"; ${ndjsonHint}`,
  );
}

const ndjsonHint = 'if each line is an object, rename it so that its name ends in .ndjson';

function tooLong(name: string): Unreadable {
  return new Unreadable(
    `it is longer than ${mebibytes(LONGEST_JSON_BYTES)}, and JSON is read as a whole; convert it to NDJSON, which may ` +
      `have any size: jq -c '.[]' FILE.json >FILE.ndjson, or '.${name}[]' if the array is in an object`,
  );
}
