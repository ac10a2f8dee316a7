// The body of an upload, made once, in which only the ids change from one sending to the next: making it anew would take
// of the processors on which the server is measured.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { TestRecord } from './records.ts';

export class RenewedUpload {
  readonly #bytes: Buffer;
  readonly #idPositions: number[] = [];

  /**
   * Makes all records with one id, which changes wherever it stands. `head` makes what is sent before the body, such as
   * the head of the request.
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

  /** Returns the same bytes every time, with ids never used before and spread over the key space as random ones are. */
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
