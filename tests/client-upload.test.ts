// The client against a real server: how an input becomes requests, and how their responses become one result.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  AbortedError,
  type ClientOptions,
  ForbiddenError,
  HeadgateClient,
  RefusedError,
  type SentShop,
  type SentTransaction,
  UnauthorizedError,
  type UploadedSlice,
  UploadInterruptedError,
  type UploadProgress,
} from '@headgate/client/client.ts';
import { testDatabases } from '../server/store/test-databases.ts';
import { apiOf } from './harness/api.ts';
import { type FaultyProxy, startFaultyProxy } from './harness/faulty-proxy.ts';
import { readAllRecords } from './harness/read-all.ts';
import { rejected } from './harness/rejected.ts';
import { runningHeadgate } from './harness/running-headgate.ts';

const MAX_BODY_BYTES = 64 * 1024;
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

describe('the client', () => {
  const running = runningHeadgate(testDatabases[0]!, { HEADGATE_MAX_BODY: String(MAX_BODY_BYTES) });

  /** A proxy between client and server, which records the requests. */
  let proxy: FaultyProxy;
  let sharedKey: string;
  before(async () => {
    proxy = await startFaultyProxy(running.headgate.url);
    sharedKey = await newKey();
  });
  after(() => proxy.close());

  async function newKey(scopes?: readonly string[]): Promise<string> {
    return (await running.headgate.newKey(undefined, scopes)).key;
  }

  /** All clients have the same organisation, unless they get a new key. */
  function newClient(options: Partial<ClientOptions> = {}): HeadgateClient {
    return new HeadgateClient({ url: proxy.url, apiKey: sharedKey, ...options });
  }

  function shop(given: Partial<SentShop> = {}): SentShop {
    return { shop_id: randomUUID(), name: 'Corner Books', region: 'GB', ...given };
  }

  function shops(count: number): SentShop[] {
    return Array.from({ length: count }, (_, at) => shop({ name: `Shop ${at}` }));
  }

  async function requestsDuring(work: () => Promise<unknown>): Promise<FaultyProxy['requests']> {
    const first = proxy.requests.length;
    await work();
    return proxy.requests.slice(first);
  }

  function recordsIn(body: Buffer): unknown[] {
    return (JSON.parse(body.toString()) as { records: unknown[] }).records;
  }

  describe('splitting into requests', () => {
    test('by count: no request exceeds the limit, and together they hold the input in order', async () => {
      const client = newClient({ maxRecordsPerRequest: 10, concurrency: 1 });
      const input = shops(35);
      const requests = await requestsDuring(() => client.upload('shops', input));
      assert.deepEqual(
        requests.map(({ body }) => recordsIn(body).length),
        [10, 10, 10, 5],
      );
      assert.deepEqual(
        requests.flatMap(({ body }) => recordsIn(body)),
        input,
      );
    });

    test('by bytes of UTF-8: the limit is exact, and a larger record is sent alone', async () => {
      const names = ['é', '漢字'.repeat(40), '😀'.repeat(30), 'x', 'x'.repeat(900), 'y', 'z'];
      const input = names.map((name) => shop({ name }));
      const bytesOf = (records: readonly SentShop[]): number =>
        Buffer.byteLength(JSON.stringify({ records }));
      const justEnoughForTwo = bytesOf(input.slice(0, 2));
      assert.ok(bytesOf([input[4]!]) > justEnoughForTwo, 'no record is larger than a request');
      for (const maxBytesPerRequest of [justEnoughForTwo, justEnoughForTwo - 1]) {
        const client = newClient({ maxBytesPerRequest, concurrency: 1 });
        const requests = await requestsDuring(() => client.upload('shops', input));
        const expected: SentShop[][] = [];
        for (const record of input) {
          const last = expected.at(-1);
          if (last !== undefined && bytesOf([...last, record]) <= maxBytesPerRequest) last.push(record);
          else expected.push([record]);
        }
        assert.deepEqual(
          requests.map(({ body }) => recordsIn(body)),
          expected,
        );
      }
    });

    test('an input without records makes no request', async () => {
      const client = newClient();
      const requests = await requestsDuring(async () => {
        const { counts } = await client.upload('shops', []);
        assert.deepEqual(counts, { received: 0, created: 0, updated: 0, unchanged: 0, rejected: 0 });
      });
      assert.equal(requests.length, 0);
    });

    test('every request has an idempotency key of its own; a dry run has none and stores nothing', async () => {
      const client = newClient({ maxRecordsPerRequest: 2 });
      const requests = await requestsDuring(() => client.upload('shops', shops(6)));
      const keys = requests.map(({ headers }) => headers['idempotency-key']);
      assert.equal(new Set(keys).size, 3);
      assert.ok(keys.every((key) => typeof key === 'string' && key.length >= 32));
      assert.match(requests[0]!.headers['user-agent'] ?? '', /^headgate-client\/\d/);

      const input = shops(3);
      const dry = await requestsDuring(async () => {
        const result = await client.upload('shops', input, { dryRun: true });
        assert.equal(result.dryRun, true);
        assert.equal(result.counts.created, 3);
      });
      assert.ok(
        dry.every(({ path, headers }) => path.endsWith('?dry_run=true') && !('idempotency-key' in headers)),
      );
      assert.equal(await client.get('shops', input[0]!.shop_id), null);
    });

    test('a body compressed with gzip arrives unchanged', async () => {
      const client = newClient({ compression: 'gzip' });
      const input = shops(50);
      const requests = await requestsDuring(async () => {
        assert.equal((await client.upload('shops', input)).counts.created, 50);
      });
      assert.equal(requests[0]!.headers['content-encoding'], 'gzip');
      assert.ok(requests[0]!.body.length < Buffer.byteLength(JSON.stringify(input)) / 2);
    });

    test('a request that the server finds too large is halved until it fits, and later ones begin smaller', async () => {
      const client = newClient({ concurrency: 1, maxRecordsPerRequest: 40 });
      const input = Array.from({ length: 160 }, (_, at) =>
        shop({ name: `${at} ${'x'.repeat(2000)}`, region: at % 50 === 30 ? '?' : 'GB' }),
      );
      const requests = await requestsDuring(async () => {
        const { counts, errors } = await client.upload('shops', input);
        assert.deepEqual([counts.created, counts.rejected], [157, 3]);
        assert.deepEqual(
          errors.map(({ index, id }) => [index, id]),
          [30, 80, 130].map((index) => [index, input[index]!.shop_id]),
        );
      });
      const fitting = requests.filter(({ body }) => body.length <= MAX_BODY_BYTES);
      assert.deepEqual(
        fitting.flatMap(({ body }) => recordsIn(body)),
        input,
      );
      assert.equal(requests.length - fitting.length, 1);
    });

    test('a record that is too large by itself is rejected and named; the others arrive', async () => {
      const client = newClient();
      const large = shop({ name: 'x'.repeat(MAX_BODY_BYTES) });
      const { counts, errors } = await client.upload('shops', [...shops(3), large, ...shops(2)]);
      assert.deepEqual([counts.received, counts.created, counts.rejected], [6, 5, 1]);
      assert.deepEqual(
        errors.map(({ index, id, code }) => ({ index, id, code })),
        [{ index: 3, id: large.shop_id, code: 'too_long' }],
      );
    });
  });

  describe('the result', () => {
    test('errors of many requests are indexed and ordered by the input, not by response', async (t) => {
      const client = newClient({ maxRecordsPerRequest: 7, concurrency: 4 });
      const input: SentShop[] = shops(100).map((record, at) =>
        at % 9 === 4 ? { ...record, region: 'Britain' } : record,
      );
      // The first request of each pair is held back until the other has arrived.
      const firstNumber = proxy.requests.length;
      let release = (): void => {};
      const held = new Promise<null>((resolve) => {
        release = () => resolve(null);
      });
      t.mock.method(proxy, 'fault', (_: unknown, number: number) => {
        if (number === firstNumber + 3) release();
        return number === firstNumber ? held : null;
      });
      const { counts, errors, requestIds, type, dryRun } = await client.upload('shops', input);
      const wrong = input.flatMap((record, index) =>
        record.region === 'Britain' ? [{ index, id: record.shop_id }] : [],
      );
      assert.deepEqual(
        errors.map(({ index, id }) => ({ index, id })),
        wrong,
      );
      assert.ok(
        errors.every(
          ({ field, code, retryable }) => field === 'region' && code === 'invalid_format' && !retryable,
        ),
      );
      assert.deepEqual(counts, {
        received: 100,
        created: 100 - wrong.length,
        updated: 0,
        unchanged: 0,
        rejected: wrong.length,
      });
      assert.equal(new Set(requestIds).size, Math.ceil(100 / 7));
      assert.deepEqual([type, dryRun], ['shops', false]);
    });

    test('created, updated and unchanged are counted separately', async () => {
      const client = newClient({ maxRecordsPerRequest: 3 });
      const input = shops(8);
      await client.upload('shops', input.slice(0, 6));
      const changed = input.map((record, at) => (at < 2 ? { ...record, name: 'New' } : record));
      const { counts } = await client.upload('shops', changed);
      assert.deepEqual(counts, { received: 8, created: 2, updated: 2, unchanged: 4, rejected: 0 });
    });

    test('values that are not records are reported with their index', async () => {
      const client = newClient({ maxRecordsPerRequest: 2 });
      const input = [shop(), null, 7, 'text', undefined, [], shop()] as unknown as SentShop[];
      const { counts, errors } = await client.upload('shops', input);
      assert.deepEqual([counts.created, counts.rejected], [2, 5]);
      assert.deepEqual(
        errors.map(({ index, code }) => [index, code]),
        [1, 2, 3, 4, 5].map((index) => [index, 'not_an_object']),
      );
    });

    test('lenient: unknown fields are dropped, and counted over all requests', async () => {
      const client = newClient({ maxRecordsPerRequest: 2 });
      const input = shops(5).map((record) => ({ ...record, colour: 'red' }));
      const { counts, warnings } = await client.upload('shops', input, { lenient: true });
      assert.equal(counts.created, 5);
      assert.deepEqual(
        warnings.map(({ code, field, count }) => ({ code, field, count })),
        [{ code: 'unknown_field', field: 'colour', count: 5 }],
      );
      assert.equal((await client.upload('shops', input)).counts.rejected, 5);
    });

    test('the last of several records with one id wins, however many requests are in flight', async (t) => {
      const client = newClient({ maxRecordsPerRequest: 1, concurrency: 8 });
      const lastButOne = proxy.requests.length + 28;
      const late = async (): Promise<null> => sleep(200, null);
      t.mock.method(proxy, 'fault', (_: unknown, number: number) => (number === lastButOne ? late() : null));
      const shop_id = randomUUID();
      const versions = Array.from({ length: 30 }, (_, at) =>
        shop({ shop_id: at % 2 === 0 ? shop_id : shop_id.toUpperCase(), name: `Version ${at}` }),
      );
      await client.upload('shops', versions);
      assert.equal((await client.get('shops', shop_id))?.name, 'Version 29');
    });
  });

  describe('callbacks', () => {
    test('progress only grows, and ends with the totals', async () => {
      const client = newClient({ maxRecordsPerRequest: 5 });
      const seen: UploadProgress[] = [];
      const { counts } = await client.upload('shops', [...shops(22), shop({ region: '?' })], {
        onProgress: (progress) => seen.push(progress),
      });
      assert.equal(seen.length, 5);
      assert.deepEqual(seen.at(-1), { ...counts, sent: 23, retries: 0 });
      for (const [at, { sent, received }] of seen.entries()) {
        assert.ok(received >= (seen[at - 1]?.received ?? 0) && sent >= received);
      }
    });

    test('slices are reported in input order, one at a time, with their rejected records', async () => {
      const client = newClient({ maxRecordsPerRequest: 4, concurrency: 4 });
      const input = shops(30).map((record, at) =>
        at % 5 === 3 ? { ...record, region: '?', name: '' } : record,
      );
      const slices: UploadedSlice<'shops'>[] = [];
      let isBusy = false;
      const result = await client.upload('shops', input, {
        async onSlice(slice) {
          assert.equal(isBusy, false);
          isBusy = true;
          await sleep(1);
          isBusy = false;
          slices.push(slice);
        },
      });
      assert.deepEqual(
        slices.map(({ firstIndex, count }) => [firstIndex, count]),
        [0, 4, 8, 12, 16, 20, 24, 28].map((first) => [first, first === 28 ? 2 : 4]),
      );
      const rejectedRecords = slices.flatMap((slice) => slice.rejected);
      assert.deepEqual(
        rejectedRecords.map(({ index }) => index),
        [3, 8, 13, 18, 23, 28],
      );
      for (const { index, record, errors } of rejectedRecords) {
        assert.equal(record, input[index]);
        assert.deepEqual(errors.map(({ field }) => field).sort(), ['name', 'region']);
        assert.ok(errors.every((error) => error.index === index));
      }
      assert.ok(slices.every(({ requestIds }) => requestIds.length === 1));
      assert.deepEqual([result.errors, result.requestIds, result.counts.rejected], [[], [], 6]);
    });

    for (const callback of ['onProgress', 'onSlice'] as const) {
      test(`an error thrown by ${callback} stops the upload, which rejects with it`, async () => {
        const client = newClient({ maxRecordsPerRequest: 1, concurrency: 1 });
        let isClosed = false;
        function* endless(): Generator<SentShop> {
          try {
            for (;;) yield shop();
          } finally {
            isClosed = true;
          }
        }
        const ours = new Error('no more');
        const failing = {
          [callback]: () => {
            throw ours;
          },
        };
        assert.equal(await rejected(client.upload('shops', endless(), failing), Error), ours);
        assert.equal(isClosed, true);
      });

      test(`a rejection of an asynchronous ${callback} stops the upload, even at its end`, async () => {
        const client = newClient({ maxRecordsPerRequest: 2, concurrency: 1 });
        const ours = new Error('no more');
        let calls = 0;
        const failing = {
          [callback]: async () => {
            calls++;
            await sleep(20);
            if (calls === 2) throw ours;
          },
        };
        assert.equal(await rejected(client.upload('shops', shops(3), failing), Error), ours);
        const requests = await requestsDuring(async () => {
          calls = 1;
          assert.equal(await rejected(client.upload('shops', shops(40), failing), Error), ours);
        });
        assert.ok(requests.length <= 4, `${requests.length} requests`);
      });
    }
  });

  describe('iterated inputs', () => {
    test('an asynchronous input is read at most a few slices ahead', async () => {
      const client = newClient({ maxRecordsPerRequest: 10, concurrency: 2 });
      let given = 0;
      let settled = 0;
      let furthestAhead = 0;
      async function* source(): AsyncGenerator<SentShop> {
        for (; given < 300; given++) {
          furthestAhead = Math.max(furthestAhead, given - settled);
          yield shop();
        }
      }
      const { counts } = await client.upload('shops', source(), {
        async onSlice({ firstIndex, count }) {
          if (firstIndex === 0) await sleep(300);
          settled += count;
        },
      });
      assert.equal(counts.created, 300);
      assert.ok(furthestAhead > 10, `${furthestAhead}: it did not read ahead at all`);
      assert.ok(furthestAhead <= 2 * 2 * 10 + 10, `${furthestAhead} records ahead`);
    });

    test('if the input throws, all records before are stored, and the error names the index', async () => {
      const client = newClient({ maxRecordsPerRequest: 10 });
      const broken = new Error('line 26 is broken');
      const input = shops(25);
      async function* source(): AsyncGenerator<SentShop> {
        yield* input;
        throw broken;
      }
      const error = await rejected(client.upload('shops', source()), UploadInterruptedError);
      assert.equal(error.cause, broken);
      assert.match(error.message, /record 25: line 26 is broken/);
      assert.deepEqual([error.nextIndex, error.result.counts.created], [25, 25]);
      assert.ok(await client.get('shops', input[24]!.shop_id));
    });

    test('an input that is not iterable is refused', async () => {
      const client = newClient();
      for (const input of [shop(), null, undefined, 7]) {
        const error = await rejected(client.upload('shops', input as never), TypeError);
        assert.match(error.message, /records must be an array/);
      }
    });

    test('a value that JSON cannot represent stops the upload at its record', async () => {
      const client = newClient();
      const input = [shop(), { ...shop(), name: 1n as unknown as string }, shop()];
      const error = await rejected(client.upload('shops', input), UploadInterruptedError);
      assert.ok(error.cause instanceof TypeError);
      assert.deepEqual([error.nextIndex, error.result.counts.created], [1, 1]);
    });

    for (const place of [0, 1]) {
      test(`an input is closed at record ${place} if JSON cannot represent that record`, async () => {
        const client = newClient();
        let given = 0;
        let isClosed = false;
        function* source(): Generator<SentShop> {
          try {
            for (;;) yield given++ === place ? shop({ name: 1n as unknown as string }) : shop();
          } finally {
            isClosed = true;
          }
        }
        const error = await rejected(client.upload('shops', source()), UploadInterruptedError);
        assert.deepEqual([error.nextIndex, given, isClosed], [place, place + 1, true]);
      });
    }

    test('an input that threw or ended is not closed again', async () => {
      const client = newClient();
      for (const last of [
        (): never => {
          throw new Error('broken');
        },
        async (): Promise<never> => {
          throw new Error('broken');
        },
        () => ({ done: true as const, value: undefined }),
      ]) {
        let closings = 0;
        const steps = [() => ({ done: false as const, value: shop() }), last];
        const source = {
          [Symbol.asyncIterator]: () => ({
            next: () => steps.shift()!() as Promise<IteratorResult<SentShop>>,
            async return() {
              closings++;
              return { done: true as const, value: undefined };
            },
          }),
        };
        await client.upload('shops', source).catch(() => {});
        assert.deepEqual([steps.length, closings], [0, 0]);
      }
    });

    test('memory stays flat over a long input', async () => {
      const client = newClient({ maxRecordsPerRequest: 200 });
      const shared = shop();
      await client.upload('shops', [shared]);
      const heapBytes = (): number => {
        collectGarbage();
        return process.memoryUsage().heapUsed;
      };
      let firstBytes = 0;
      let lastBytes = 0;
      let slices = 0;
      function* source(): Generator<SentTransaction> {
        for (let at = 0; at < 20_000; at++) {
          yield {
            transaction_id: randomUUID(),
            shop_id: shared.shop_id,
            region: 'GB',
            savings: 0,
            amount: at % 2,
          };
        }
      }
      const { counts } = await client.upload('transactions', source(), {
        onSlice() {
          slices++;
          if (slices === 20) firstBytes = heapBytes();
          if (slices === 100) lastBytes = heapBytes();
        },
      });
      assert.deepEqual([counts.received, counts.rejected], [20_000, 10_000]);
      // Keeping all errors of the 80 slices between would take some 4 MB.
      const grownBytes = lastBytes - firstBytes;
      assert.ok(grownBytes < 1_500_000, `the heap grew by ${grownBytes} bytes`);
    });
  });

  describe('stopping', () => {
    test('an abort ends requests in flight, closes the input, and reports what was stored', async (t) => {
      const client = newClient({ maxRecordsPerRequest: 10, concurrency: 2 });
      const firstNumber = proxy.requests.length;
      t.mock.method(proxy, 'fault', (_: unknown, number: number) =>
        number - firstNumber >= 2 ? 'silence' : null,
      );
      let isClosed = false;
      async function* source(): AsyncGenerator<SentShop> {
        try {
          for (;;) yield shop();
        } finally {
          isClosed = true;
        }
      }
      const controller = new AbortController();
      const reason = new Error('enough');
      let settled = 0;
      const upload = client.upload('shops', source(), {
        signal: controller.signal,
        onSlice({ count }) {
          settled += count;
          if (settled === 20) controller.abort(reason);
        },
      });
      const error = await rejected(upload, UploadInterruptedError);
      assert.ok(error.cause instanceof AbortedError);
      assert.equal(error.cause.cause, reason);
      assert.deepEqual([error.nextIndex, error.result.counts.created], [20, 20]);
      assert.equal(isClosed, true);
    });

    test('an abort does not wait for an input that never yields', async () => {
      const client = newClient();
      const controller = new AbortController();
      let isClosed = false;
      const source: AsyncIterable<SentShop> = {
        [Symbol.asyncIterator]: () => ({
          next() {
            setImmediate(() => controller.abort());
            return new Promise(() => {});
          },
          async return() {
            isClosed = true;
            return { done: true, value: undefined };
          },
        }),
      };
      const upload = client.upload('shops', source, { signal: controller.signal });
      const error = await rejected(upload, UploadInterruptedError);
      assert.ok(error.cause instanceof AbortedError);
      assert.equal(isClosed, true);
    });

    test('nothing is sent if the signal is already aborted', async () => {
      const client = newClient();
      const signal = AbortSignal.abort();
      const requests = await requestsDuring(async () => {
        const error = await rejected(client.upload('shops', shops(2), { signal }), UploadInterruptedError);
        assert.ok(error.cause instanceof AbortedError);
        await rejected(client.get('shops', randomUUID(), { signal }), AbortedError);
      });
      assert.equal(requests.length, 0);
    });
  });

  describe('refusals', () => {
    test('a wrong key, a missing scope and an unknown type each have an error of their own', async () => {
      const wrong = new HeadgateClient({ url: proxy.url, apiKey: 'hg_wrong_key' });
      const unauthorized = await rejected(wrong.get('shops', randomUUID()), UnauthorizedError);
      assert.deepEqual([unauthorized.status, unauthorized.error], [401, 'Unauthorized']);
      assert.match(unauthorized.message, /API key/);
      assert.match(unauthorized.requestId ?? '', /^[0-9a-f-]{36}$/);

      function* endless(): Generator<SentShop> {
        for (;;) yield shop();
      }
      const stopped = await rejected(wrong.upload('shops', endless()), UploadInterruptedError);
      assert.ok(stopped.cause instanceof UnauthorizedError);

      const reader = new HeadgateClient({ url: proxy.url, apiKey: await newKey(['data:read']) });
      const interrupted = await rejected(reader.upload('shops', shops(3)), UploadInterruptedError);
      assert.ok(interrupted.cause instanceof ForbiddenError);
      assert.match(interrupted.message, /data:write/);
      assert.equal(interrupted.nextIndex, 0);

      const client = newClient();
      const type = 'shop' as 'shops';
      const unknown = await rejected(client.upload(type, shops(1)), UploadInterruptedError);
      assert.equal((unknown.cause as RefusedError).status, 404);
      assert.match(unknown.message, /shops/);
      await rejected(client.get(type, randomUUID()), TypeError);
    });

    test('the upload fails if the server refuses a request within the limit that it named', async (t) => {
      const client = newClient();
      let message = '';
      t.mock.method(proxy, 'fault', () => ({
        status: 400,
        body: JSON.stringify({ error: 'Bad Request', message, request_id: randomUUID() }),
      }));
      for (const named of [0, 2]) {
        message = `"records" has 3 records; send at most ${named} in one request.`;
        const requests = await requestsDuring(async () => {
          const error = await rejected(client.upload('shops', shops(3)), UploadInterruptedError);
          assert.equal((error.cause as RefusedError).message, message);
        });
        assert.ok(requests.length <= 2, `${requests.length} requests`);
      }
    });

    test('the constructor refuses an invalid address, key or number', () => {
      const apiKey = 'hg_a_b';
      const url = 'http://127.0.0.1:1';
      const wrong: [ClientOptions, RegExp][] = [
        [{ url: 'data.example.com', apiKey }, /https:\/\/data\.example\.com.*"data\.example\.com"/],
        [{ url: 'ftp://data.example.com', apiKey }, /url must be/],
        [{ url: 'https://me:secret@data.example.com', apiKey }, /password/],
        [{ url, apiKey: '' }, /apiKey/],
        [{ url, apiKey: 'hg_a\nb' }, /apiKey/],
        [{ url, apiKey, concurrency: 0 }, /concurrency must be .*, not 0/],
        [{ url, apiKey, maxRecordsPerRequest: 1.5 }, /maxRecordsPerRequest/],
        [{ url, apiKey, maxBytesPerRequest: Number.NaN }, /maxBytesPerRequest/],
        [{ url, apiKey, concurrency: '4' as never }, /concurrency must be .*, not "4"/],
        [{ url, apiKey, compression: 'br' as never }, /compression must be 'gzip' or null, not "br"/],
        [{ url, apiKey, userAgent: 'loader\n1' }, /userAgent/],
        [{ url, apiKey, fetch: {} as never }, /fetch must be a function/],
        [{ url, apiKey, retry: 3 as never }, /retry must be an object/],
      ];
      const beyond = [Number.NaN, -1, '5' as unknown as number, -Infinity];
      for (const value of [...beyond, 0])
        wrong.push([{ url, apiKey, requestTimeoutMs: value }, /requestTimeoutMs must be/]);
      for (const attempts of [...beyond, 0, 1.5])
        wrong.push([{ url, apiKey, retry: { attempts } }, /retry\.attempts must be/]);
      for (const name of ['firstPauseMs', 'longestPauseMs', 'patienceMs'] as const) {
        for (const value of beyond)
          wrong.push([{ url, apiKey, retry: { [name]: value } }, new RegExp(`retry\\.${name} must be`)]);
      }
      wrong.push([{ url, apiKey, retry: { firstPauseMs: Infinity } }, /retry\.firstPauseMs must be/]);
      for (const [options, expected] of wrong) {
        assert.throws(
          () => new HeadgateClient(options),
          (error: Error) => {
            assert.match(error.message, expected);
            assert.doesNotMatch(error.message, /secret/);
            return error instanceof TypeError;
          },
        );
      }
      const retry = { attempts: Infinity, firstPauseMs: 0, longestPauseMs: Infinity, patienceMs: Infinity };
      new HeadgateClient({ url, apiKey, retry, requestTimeoutMs: Infinity });
      new HeadgateClient({ url, apiKey, retry: { attempts: undefined, patienceMs: 0 } });
    });

    test('an invalid page size or time throws at the call, before anything is sent', async () => {
      const client = newClient();
      const requests = await requestsDuring(async () => {
        for (const pageSize of [0, -1, 1.5, Number.NaN, Infinity, '10' as unknown as number]) {
          assert.throws(() => client.list('shops', { pageSize }), /^TypeError: pageSize must be/);
          assert.throws(() => client.interactions({ pageSize }), /^TypeError: pageSize must be/);
        }
        const never = new Date(Number.NaN);
        assert.throws(() => client.interactions({ from: never }), /^TypeError: from must be/);
        assert.throws(() => client.interactions({ to: never }), /^TypeError: to must be/);
        const number = Date.now() as unknown as Date;
        assert.throws(() => client.interactions({ to: number }), /^TypeError: to must be .*, not \d+/);
        assert.throws(() => client.interactions({ item_id: null as never }), /^TypeError: item_id must be/);
      });
      assert.equal(requests.length, 0);
    });

    test('an invalid idempotency key is refused before anything is sent', async () => {
      const client = newClient();
      const about = shop();
      await client.upload('shops', [about]);
      const view = {
        interaction_type: 'PAGE_VIEW',
        item_type: 'SHOP',
        item_id: about.shop_id,
        event_timestamp: 1_700_000_000,
      } as const;
      const requests = await requestsDuring(async () => {
        for (const wrong of ['', ' ', 'a b', 'a\nb', 'clé', 'x'.repeat(256), 7 as unknown as string]) {
          const error = await rejected(client.record(view, { idempotencyKey: wrong }), TypeError);
          assert.match(error.message, /idempotencyKey must be 1 to 255 visible ASCII characters/);
        }
      });
      assert.equal(requests.length, 0);
      for (const idempotencyKey of ['x'.repeat(255), '~']) await client.record(view, { idempotencyKey });
    });
  });

  describe('reading', () => {
    test('records are read by id and as a list, page by page, with deleted ones on request', async () => {
      const key = await newKey();
      const client = new HeadgateClient({ url: `${proxy.url}/`, apiKey: key });
      const input = shops(25).map((record, at) => ({ ...record, is_deleted: at % 5 === 0 }));
      await client.upload('shops', input);
      assert.equal((await client.get('shops', input[1]!.shop_id.toUpperCase()))?.name, input[1]!.name);
      assert.equal(await client.get('shops', randomUUID()), null);
      assert.equal(await client.get('shops', 'no/uuid?'), null);
      const requests = await requestsDuring(async () => {
        const listed = await Array.fromAsync(client.list('shops', { pageSize: 6, includeDeleted: true }));
        assert.deepEqual(
          listed,
          await readAllRecords(apiOf(running.headgate.url, key), 'shops', '&include_deleted=true'),
        );
        assert.equal(listed.length, 25);
      });
      assert.equal(requests.length, 5);
      assert.equal((await Array.fromAsync(client.list('shops'))).length, 20);
      const below = newClient({ url: `${proxy.url}/below/this` });
      const [elsewhere] = await requestsDuring(() => below.get('shops', input[0]!.shop_id));
      assert.equal(elsewhere!.path, `/below/this/v1/data/shops/${input[0]!.shop_id}`);
      const first = await requestsDuring(async () => {
        for await (const _ of client.list('shops', { pageSize: 6 })) break;
      });
      assert.equal(first.length, 1);
      const bad = Array.fromAsync(client.list('shops', { pageSize: 1001 }));
      assert.equal((await rejected(bad, RefusedError)).status, 400);
    });

    test('interactions are recorded, read and filtered', async () => {
      const client = newClient({ apiKey: await newKey() });
      const about = shop();
      await client.upload('shops', [about]);
      const seen = { interaction_type: 'PAGE_VIEW', item_type: 'SHOP', item_id: about.shop_id } as const;
      const stored = [];
      for (let second = 1; second <= 5; second++) {
        const platform = second % 2 === 0 ? 'IOS' : 'WEB';
        stored.push(
          await client.record({
            ...seen,
            event_timestamp: 1_700_000_000 + second,
            platform,
            user_id: `u${second}`,
          }),
        );
      }
      assert.deepEqual(await client.getInteraction(stored[0]!.interaction_id), stored[0]);
      assert.equal(await client.getInteraction(randomUUID()), null);
      assert.deepEqual(await Array.fromAsync(client.interactions({ pageSize: 2 })), stored.toReversed());
      const from = new Date(1_700_000_002_000);
      const to = new Date(1_700_000_004_000).toISOString();
      assert.deepEqual(
        (await Array.fromAsync(client.interactions({ from, to, item_type: 'SHOP' }))).map(
          ({ user_id }) => user_id,
        ),
        ['u3', 'u2'],
      );
      const idempotencyKey = randomUUID();
      const once = { ...seen, event_timestamp: 1_700_000_009 };
      let replays = 0;
      const onReplayed = (): void => {
        replays++;
      };
      const first = await client.record(once, { idempotencyKey, onReplayed });
      assert.equal(replays, 0);
      assert.deepEqual(await client.record(once, { idempotencyKey, onReplayed }), first);
      assert.equal(replays, 1);
      const other = { ...once, event_timestamp: 1_700_000_010 };
      const refused = await rejected(client.record(other, { idempotencyKey, onReplayed }), RefusedError);
      assert.deepEqual([refused.status, refused.replayed, replays], [422, false, 1]);
    });

    test('a refusal shows whether it was replayed', async () => {
      const client = newClient();
      const wrong = {
        interaction_type: 'PAGE_VIEW',
        item_type: 'SHOP',
        item_id: randomUUID(),
        event_timestamp: 1,
      } as const;
      const idempotencyKey = randomUUID();
      const first = await rejected(client.record(wrong, { idempotencyKey }), RefusedError);
      const again = await rejected(client.record(wrong, { idempotencyKey }), RefusedError);
      assert.deepEqual([first.replayed, again.replayed], [false, true]);
      assert.deepEqual(again.details, first.details);
    });

    test('a refused interaction has its reasons field by field', async () => {
      const client = newClient();
      const wrong = {
        interaction_type: 'LOOK',
        item_type: 'SHOP',
        item_id: randomUUID(),
        event_timestamp: -1,
        mood: 1,
      };
      const error = await rejected(client.record(wrong as never), RefusedError);
      assert.equal(error.status, 400);
      assert.deepEqual(error.details.map(({ field }) => field).sort(), [
        'event_timestamp',
        'interaction_type',
        'item_id',
        'mood',
      ]);
      const lenient = await rejected(client.record(wrong as never, { lenient: true }), RefusedError);
      assert.deepEqual(lenient.details.map(({ field }) => field).sort(), [
        'event_timestamp',
        'interaction_type',
        'item_id',
      ]);
    });
  });
});

describe('a server with a low limit of records per request', () => {
  const MAX_RECORDS = 10;
  const running = runningHeadgate(testDatabases[0]!, { HEADGATE_MAX_RECORDS: String(MAX_RECORDS) });
  let proxy: FaultyProxy;
  let apiKey: string;
  before(async () => {
    proxy = await startFaultyProxy(running.headgate.url);
    ({ key: apiKey } = await running.headgate.newKey());
  });
  after(() => proxy.close());

  const counts: [string, number, RegExp][] = [
    ['a few more', 25, /^"records" has 25 records;/],
    [
      'so many that it does not count them but their keys',
      400,
      /^The body holds more than \d+ keys and elements;/,
    ],
    ['even more', 600, /^The body holds more than \d+ objects and arrays;/],
  ];
  for (const [name, count, expected] of counts) {
    test(`${name}: the client learns the limit from the refusal and continues`, async () => {
      const client = new HeadgateClient({
        url: proxy.url,
        apiKey,
        maxRecordsPerRequest: count,
        concurrency: 1,
      });
      const input = Array.from({ length: count + 35 }, (_, at) => ({
        shop_id: randomUUID(),
        name: `Shop ${at}`,
        region: at % 20 === 13 ? '?' : 'GB',
      }));
      const from = proxy.requests.length;
      const { counts, errors } = await client.upload('shops', input);
      const rejectedPlaces = [...input.keys()].filter((at) => at % 20 === 13);
      assert.deepEqual(
        errors.map(({ index, id }) => [index, id]),
        rejectedPlaces.map((index) => [index, input[index]!.shop_id]),
      );
      assert.equal(counts.created, input.length - rejectedPlaces.length);
      const [first, ...others] = proxy.requests.slice(from).map(({ body }) => {
        const { records } = JSON.parse(body.toString()) as { records: SentShop[] };
        return records;
      });
      assert.equal(first!.length, count);
      assert.deepEqual(others.flat(), input);
      assert.ok(others.every(({ length }) => length <= MAX_RECORDS));
      assert.ok(others.length <= Math.ceil(input.length / MAX_RECORDS) + 1, `${others.length} requests`);
      const { body } = await apiOf(running.headgate.url, apiKey).request('/v1/data/shops', {
        body: { records: first },
      });
      assert.match(body.message, expected);
    });
  }

  test('requests already in flight when the limit is learnt are sent again in parts, too', async () => {
    const client = new HeadgateClient({ url: proxy.url, apiKey, maxRecordsPerRequest: 25, concurrency: 4 });
    const input = Array.from({ length: 200 }, (_, at) => ({
      shop_id: randomUUID(),
      name: `Shop ${at}`,
      region: 'GB',
    }));
    const places: number[] = [];
    const { counts } = await client.upload('shops', input, {
      onSlice: ({ firstIndex, count }) => {
        places.push(firstIndex, firstIndex + count);
      },
    });
    assert.equal(counts.created, 200);
    assert.deepEqual([places[0], places.at(-1)], [0, 200]);
  });
});
