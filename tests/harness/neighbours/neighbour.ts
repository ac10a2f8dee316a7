// The process of an ordinary organisation: it uploads one record, plain and compressed, reads one, and requests
// /readyz, in turn and at a steady pace. It measures how long each request takes.

import { Agent, type RequestOptions, request } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { takeOrder } from '../prepared-child.ts';
import { leastRecord } from '../records.ts';

export const kinds = ['upload', 'packed', 'read', 'ready'] as const;
export type Kind = (typeof kinds)[number];

export interface NeighbourOrder {
  readonly url: string;
  readonly key: string;
  /** Each upload refers to the next shop, so that the server has to look it up. */
  readonly shopIds: readonly string[];
  readonly durationMs: number;
}

export interface NeighbourResult {
  readonly timesMs: Readonly<Record<Kind, readonly number[]>>;
  /** The problems of the requests without status 200. */
  readonly failures: readonly string[];
  /** How late this process itself was woken at the 99th percentile. */
  readonly ownP99Ms: number;
}

const ASK_EVERY_MS = 10;
const WARM_UP_ROUNDS = 20;
/** A request without a response this long after the end of the attack has failed. */
const PATIENCE_MS = 10_000;
const SHOWN_CHARACTERS = 150;

class Neighbour {
  readonly #order: NeighbourOrder;
  readonly #agent = new Agent({ keepAlive: true });
  #shops = 0;

  constructor(order: NeighbourOrder) {
    this.#order = order;
  }

  async warmUp(): Promise<void> {
    for (let round = 0; round < WARM_UP_ROUNDS; round++) {
      // All at once, to open the connections now: PostgreSQL takes half a second for each while it is under attack.
      const failures = await Promise.all([...kinds, ...kinds, ...kinds].map((kind) => this.#ask(kind)));
      const failure = failures.find((found) => found !== null);
      if (failure != null) throw new Error(failure);
    }
  }

  async run(): Promise<NeighbourResult> {
    const timesMs: Record<Kind, number[]> = { upload: [], packed: [], read: [], ready: [] };
    const failures: string[] = [];
    const ownDelay = monitorEventLoopDelay({ resolution: ASK_EVERY_MS });
    ownDelay.enable();
    const asked: Promise<void>[] = [];
    const givenUp = new AbortController();
    // Requests are sent on time, even if the last one has no response yet: a slow response must not hide the next.
    const asking = setInterval(() => {
      const kind = kinds[asked.length % kinds.length]!;
      const startedAtMs = performance.now();
      asked.push(
        this.#ask(kind, givenUp.signal).then((failure) => {
          timesMs[kind].push(performance.now() - startedAtMs);
          if (failure !== null) failures.push(`${kind}: ${failure}`);
        }),
      );
    }, ASK_EVERY_MS);
    await sleep(this.#order.durationMs);
    clearInterval(asking);
    ownDelay.disable();
    const giveUp = setTimeout(() => givenUp.abort(), PATIENCE_MS);
    await Promise.all(asked);
    clearTimeout(giveUp);
    this.#agent.destroy();
    const ownP99Ms = Math.max(0, ownDelay.percentile(99) / 1e6 - ASK_EVERY_MS);
    return { timesMs, failures, ownP99Ms };
  }

  /** Resolves to null, or to a description of the failure. */
  #ask(kind: Kind, signal?: AbortSignal): Promise<string | null> {
    const { url, key, shopIds } = this.#order;
    const authorised = { Authorization: `Bearer ${key}` };
    const shopId = shopIds[this.#shops++ % shopIds.length]!;
    switch (kind) {
      case 'ready':
        return this.#send(`${url}/readyz`, { ...(signal && { signal }) });
      case 'read':
        return this.#send(`${url}/v1/data/shops/${shopId}`, {
          headers: authorised,
          ...(signal && { signal }),
        });
      case 'upload':
      case 'packed': {
        const json = JSON.stringify({ records: [leastRecord('transactions', { shop_id: shopId })] });
        const body = kind === 'packed' ? gzipSync(json) : json;
        const headers = {
          ...authorised,
          'Content-Type': 'application/json',
          'Content-Length': body.length,
          ...(kind === 'packed' ? { 'Content-Encoding': 'gzip' } : {}),
        };
        return this.#send(
          `${url}/v1/data/transactions`,
          { method: 'POST', headers, ...(signal && { signal }) },
          body,
        );
      }
    }
  }

  #send(url: string, options: RequestOptions, body: string | Buffer = ''): Promise<string | null> {
    return new Promise((resolve) => {
      const fail = (error: Error): void => resolve(error.message);
      request(url, { agent: this.#agent, ...options }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('error', fail).on('end', () => {
          const { statusCode } = response;
          resolve(statusCode === 200 ? null : `${statusCode} ${text.slice(0, SHOWN_CHARACTERS)}`);
        });
      })
        .on('error', fail)
        .end(body);
    });
  }
}

if (import.meta.main) {
  takeOrder<NeighbourOrder, NeighbourResult>(async (order) => {
    const neighbour = new Neighbour(order);
    await neighbour.warmUp();
    return () => neighbour.run();
  });
}
