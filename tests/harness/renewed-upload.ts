// The body of an upload that is made once. Only its ids change before it is sent again: making the body again would use
// CPU and distort the measurement of the server.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { TestRecord } from './records.ts';

export class RenewedUpload {
  readonly #bytes: Buffer;
  readonly #idPositions: number[] = [];

  /**
   * Makes all records with one id, which is replaced wherever it occurs. `head` returns the bytes before the body, such
   * as the head of the request.
   */
  constructor(
    records: number,
    record: (id: string) => TestRecord,
    head: (bodyBytes: number, id: string) => string = () => '',
  ) {
    const id = randomUUID();
    const body = JSON.stringify({ records: Array.from({ length: records }, () => record(id)) });
    this.#bytes = Buffer.from(head(Buffer.byteLength(body), id) + body);
    for (let at = this.#bytes.indexOf(id); at !== -1; at = this.#bytes.indexOf(id, at + 1)) {
      this.#idPositions.push(at);
    }
    assert.ok(this.#idPositions.length >= records);
  }

  /** Returns the same buffer every time, with new ids that are spread over the key space like random ones. */
  withNewIds(): Buffer {
    const rest = randomUUID().slice(8);
    const offset = Math.floor(Math.random() * 2 ** 32);
    for (const [record, position] of this.#idPositions.entries()) {
      const scattered = (offset + Math.imul(record, 0x9e3779b1)) >>> 0;
      this.#bytes.write(scattered.toString(16).padStart(8, '0') + rest, position, 'latin1');
    }
    return this.#bytes;
  }
}
