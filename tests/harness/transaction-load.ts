// A process of its own that uploads transactions without pause from several connections, so that its work
// does not disturb what is measured elsewhere. Every upload has ids that were never used before.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { prepareChild, takeOrder } from './prepared-child.ts';
import { leastRecord } from './records.ts';
import { sendUploads } from './upload-clients.ts';

export interface LoadOrder {
  readonly url: string;
  readonly key: string;
  readonly shopId: string;
  readonly clients: number;
  readonly recordsPerUpload: number;
  readonly durationMs: number;
}

export interface LoadResult {
  readonly records: number;
  readonly uploads: number;
  readonly elapsedMs: number;
}

/** Resolves when all bodies are ready and the first are being sent; `ended`, when all are answered. */
export async function startTransactionLoad(order: LoadOrder): Promise<{ ended: Promise<LoadResult> }> {
  const load = await prepareChild<LoadOrder, LoadResult>(new URL(import.meta.url), order);
  return { ended: load.run() };
}

/** An upload as bytes, in which only the ids change from one sending to the next. */
class UploadBytes {
  readonly #bytes: Buffer;
  readonly #idPositions: number[] = [];
  readonly #id: string;

  constructor(recordsPerUpload: number, shopId: string) {
    this.#id = randomUUID();
    const records = Array.from({ length: recordsPerUpload }, () =>
      leastRecord('transactions', { transaction_id: this.#id, shop_id: shopId }),
    );
    this.#bytes = Buffer.from(JSON.stringify({ records }));
    let at = this.#bytes.indexOf(this.#id);
    while (at !== -1) {
      this.#idPositions.push(at);
      at = this.#bytes.indexOf(this.#id, at + 1);
    }
    assert.equal(this.#idPositions.length, recordsPerUpload);
  }

  /** With ids never used before, spread over the whole key space as random ones are. */
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

if (import.meta.main) {
  takeOrder<LoadOrder, LoadResult>(async ({ url, key, shopId, clients, recordsPerUpload, durationMs }) => {
    const to = { url: `${url}/v1/data/transactions`, headers: { Authorization: `Bearer ${key}` } };
    const bodies = Array.from({ length: clients }, () => new UploadBytes(recordsPerUpload, shopId));
    return async () => {
      const endsAtMs = performance.now() + durationMs;
      const nextBody = (client: number): Buffer | null =>
        performance.now() < endsAtMs ? bodies[client]!.withNewIds() : null;
      const { uploads, elapsedMs } = await sendUploads({ to, clients, nextBody });
      return { records: uploads * recordsPerUpload, uploads, elapsedMs };
    };
  });
}
