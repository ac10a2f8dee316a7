// The rows of an upload on their way to the writer's thread: as JSON, in which they cross in a third of the time of a
// clone, and as bytes, which are handed over without a copy and given back once written, instead of when the collector
// comes.

import type { Row } from '../store.ts';

export interface PackedRows {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly batches: readonly { readonly endOffset: number; readonly rowCount: number }[];
}

/** JSON of the rows, as JSON.stringify writes it. */
export interface PackedBatch {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly rowCount: number;
}

export type JsonRow = (string | number | boolean | null)[];

export function packRows(batches: readonly (readonly Row[])[]): PackedRows {
  const texts = batches.map((rows) => JSON.stringify(rows));
  let length = 0;
  const ends = texts.map((text) => (length += Buffer.byteLength(text)));
  const bytes = Buffer.allocUnsafeSlow(length);
  for (const [batch, text] of texts.entries()) bytes.write(text, ends[batch - 1] ?? 0);
  return {
    bytes,
    batches: batches.map((rows, batch) => ({ endOffset: ends[batch]!, rowCount: rows.length })),
  };
}

export function rowCountOf({ batches }: PackedRows): number {
  return batches.reduce((count, { rowCount }) => count + rowCount, 0);
}

export function packedBatches({ bytes, batches }: PackedRows): readonly PackedBatch[] {
  return batches.map(({ endOffset, rowCount }, batch) => ({
    bytes: bytes.subarray(batches[batch - 1]?.endOffset ?? 0, endOffset),
    rowCount,
  }));
}

export function rowsIn({ bytes }: PackedBatch): JsonRow[] {
  return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()) as JsonRow[];
}

export function giveBackRows({ bytes }: PackedRows): void {
  bytes.buffer.transfer(0);
}
