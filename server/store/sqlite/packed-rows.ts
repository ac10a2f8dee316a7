// The rows of an upload on their way to the writer's thread: as JSON, in which they cross in a third of the time of a
// clone, and as bytes, which are handed over without a copy and given back once written, instead of when the collector
// comes.

import type { Row } from '../store.ts';

export interface PackedRows {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Where each batch ends in the bytes. */
  readonly ends: readonly number[];
  readonly rowCount: number;
}

export type JsonRow = (string | number | boolean | null)[];

export function packRows(batches: readonly (readonly Row[])[]): PackedRows {
  const texts = batches.map((rows) => JSON.stringify(rows));
  let length = 0;
  const ends = texts.map((text) => (length += Buffer.byteLength(text)));
  const bytes = Buffer.allocUnsafeSlow(length);
  for (const [batch, text] of texts.entries()) bytes.write(text, ends[batch - 1] ?? 0);
  return { bytes, ends, rowCount: batches.reduce((count, rows) => count + rows.length, 0) };
}

/** One after the other, so that no more than the rows of one batch are there as values. */
export function* unpackedBatches({ bytes, ends }: PackedRows): Generator<JsonRow[]> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (const [batch, end] of ends.entries()) {
    yield JSON.parse(buffer.toString('utf8', ends[batch - 1] ?? 0, end)) as JsonRow[];
  }
}

export function giveBackRows({ bytes }: PackedRows): void {
  bytes.buffer.transfer(0);
}
