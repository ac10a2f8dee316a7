// A process of its own that uploads transactions without pause from several connections, so that its work
// does not disturb what is measured elsewhere. Told what to do by its first message; answers when it is over.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { leastRecord } from './records.ts';

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

/** Resolves when the first uploads are under way; `ended`, when all are answered. */
export async function startTransactionLoad(order: LoadOrder): Promise<{ ended: Promise<LoadResult> }> {
  const child = fork(new URL(import.meta.url).pathname, { execArgv: process.execArgv });
  const exited = once(child, 'exit').then(([code]) => {
    throw new Error(`the load ended with ${code}`);
  });
  child.send(order);
  await Promise.race([once(child, 'message'), exited]);
  const ended = Promise.race([once(child, 'message'), exited]).then(([result]) => result as LoadResult);
  exited.catch(() => {});
  return { ended };
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

function post(order: LoadOrder, agent: Agent, body: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    const sending = request(`${order.url}/v1/data/transactions`, {
      method: 'POST',
      agent,
      headers: {
        Authorization: `Bearer ${order.key}`,
        'Content-Type': 'application/json',
        'Content-Length': body.length,
      },
    });
    sending.on('response', (response) => {
      response.resume().on('end', () => resolve(response.statusCode!));
    });
    sending.on('error', reject).end(body);
  });
}

async function carryOut(order: LoadOrder): Promise<LoadResult> {
  const { clients, recordsPerUpload, shopId, durationMs } = order;
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const bodies = Array.from({ length: clients }, () => new UploadBytes(recordsPerUpload, shopId));
  process.send!('begun');
  const startedAtMs = performance.now();
  let uploads = 0;
  const client = async (bytes: UploadBytes): Promise<void> => {
    while (performance.now() - startedAtMs < durationMs) {
      const status = await post(order, agent, bytes.withNewIds());
      if (status !== 200) throw new Error(`an upload of the load answered ${status}`);
      uploads++;
    }
  };
  await Promise.all(bodies.map(client));
  agent.destroy();
  return { records: uploads * recordsPerUpload, uploads, elapsedMs: performance.now() - startedAtMs };
}

if (import.meta.main && process.send !== undefined) {
  process.once('message', async (order: LoadOrder) => {
    process.send!(await carryOut(order));
    process.disconnect();
  });
}
