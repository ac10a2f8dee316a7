import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { destroyOnceWanted, writePieces } from './answer-sql.ts';

const WITHIN_MS = 20;

function response() {
  return {
    isDestroyed: false,
    destroy() {
      this.isDestroyed = true;
      return this as never;
    },
  };
}

test('a response is destroyed once its place is wanted, even if it was wanted before', async () => {
  const wanted = new AbortController();
  const early = response();
  destroyOnceWanted(early, wanted.signal, WITHIN_MS);
  await sleep(WITHIN_MS * 3);
  assert.equal(early.isDestroyed, false);
  wanted.abort();
  const late = response();
  destroyOnceWanted(late, wanted.signal, WITHIN_MS);
  await sleep(WITHIN_MS * 3);
  assert.deepEqual([early.isDestroyed, late.isDestroyed], [true, true]);
});

test('a response is not destroyed after it has released its place', async () => {
  const wanted = new AbortController();
  const sent = response();
  const forget = destroyOnceWanted(sent, wanted.signal, WITHIN_MS);
  wanted.abort();
  forget();
  await sleep(WITHIN_MS * 3);
  assert.equal(sent.isDestroyed, false);
});

/** A response whose client reads every piece after the time. */
class SlowResponse extends EventEmitter {
  readonly #readsAfterMs: number;
  readonly left = new AbortController();
  destroyed = false;

  constructor(readsAfterMs: number) {
    super();
    this.#readsAfterMs = readsAfterMs;
  }

  write(): boolean {
    setTimeout(() => this.emit('drain'), this.#readsAfterMs);
    return false;
  }

  destroy(): void {
    this.destroyed = true;
    this.left.abort();
  }

  end(): void {}
}

function* pieces(count: number): Generator<string> {
  for (let piece = 0; piece < count; piece++) yield 'x'.repeat(64 * 1024);
}

async function writeTo(response: SlowResponse, count: number, wanted: AbortSignal): Promise<void> {
  const client = { response: response as unknown as ServerResponse, left: response.left.signal };
  await writePieces(pieces(count), { ...client, placeWanted: wanted });
}

test('a client that reads less than 1 MiB in 5 s loses a place that is wanted, although it reads on', async () => {
  const responses = [new SlowResponse(800), new SlowResponse(200), new SlowResponse(800)] as const;
  const never = new AbortController().signal;
  await Promise.all([
    writeTo(responses[0], 10, AbortSignal.abort()),
    writeTo(responses[1], 40, AbortSignal.abort()),
    writeTo(responses[2], 10, never),
  ]);
  assert.deepEqual(
    responses.map(({ destroyed }) => destroyed),
    [true, false, false],
  );
});
