// The client when the network fails or the server dies: what it sends again, when it gives up, and that everything
// arrives exactly once.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import {
  type ClientOptions,
  HeadgateClient,
  RefusedError,
  type RetryNotice,
  type SentInteraction,
  type SentShop,
  UnreachableError,
  UploadInterruptedError,
  type UploadProgress,
} from '@headgate/client/client.ts';
import { Patience, retryAfterMs, retryRules } from '@headgate/client/patience.ts';
import { testDatabases } from '../server/store/test-databases.ts';
import { times } from '../server/store/test-thoroughness.ts';
import { type Fault, type FaultyProxy, startFaultyProxy } from './harness/faulty-proxy.ts';
import { forEachStore } from './harness/for-each-store.ts';
import { type Headgate, startHeadgate } from './harness/headgate.ts';
import { rejected } from './harness/rejected.ts';
import { runningHeadgate } from './harness/running-headgate.ts';

/** The upload in whose middle the server is killed: at least so many times, whenever so many records are stored. */
const KILLED_RECORDS = times(3000, 1400);
const LEAST_KILLS = times(2, 1);
const RECORDS_PER_LIFE = 800;

const quick = { firstPauseMs: 1, longestPauseMs: 10 };

function shop(name = 'Corner Books'): SentShop {
  return { shop_id: randomUUID(), name, region: 'GB' };
}

function shops(count: number): SentShop[] {
  return Array.from({ length: count }, (_, at) => shop(`Shop ${at}`));
}

const badGateway: Fault = {
  status: 502,
  headers: { 'Content-Type': 'text/html' },
  body: '<html><h1>502 Bad Gateway</h1></html>',
};

function refusal(status: number, headers: Readonly<Record<string, string>> = {}): Fault {
  const body = { error: 'Refused', message: `It is ${status}.`, request_id: randomUUID() };
  return { status, headers, body: JSON.stringify(body) };
}

/** Responses to an upload of two records that Headgate never gives. */
const garbage: [string, object][] = [
  [
    'an error at a place beyond the records',
    batchesOf({ rejected: 1, created: 1 }, [problem(2, 'x', 'required', false)]),
  ],
  [
    'an error at a negative place',
    batchesOf({ rejected: 1, created: 1 }, [problem(-1, 'x', 'required', false)]),
  ],
  ['an error at half a place', batchesOf({ rejected: 1, created: 1 }, [problem(0.5, 'x', 'required', true)])],
  [
    'an error without a place',
    batchesOf({ rejected: 1, created: 1 }, [{ code: 'required', message: 'is required' }]),
  ],
  ['an error that is none', batchesOf({ rejected: 1, created: 1 }, [null])],
  [
    'an error without a code',
    batchesOf({ rejected: 1, created: 1 }, [{ ...problem(0, 'x', 'required', true), code: 7 }]),
  ],
  ['a rejected record that no error names', batchesOf({ rejected: 1, created: 1 }, [])],
  [
    'two rejected records and errors of one',
    batchesOf({ rejected: 2 }, [problem(0, 'x', 'required', false), problem(0, 'x', 'wrong_type', false)]),
  ],
  [
    'an error of a record that is counted as created',
    batchesOf({ created: 2 }, [problem(0, 'x', 'required', true)]),
  ],
  ['counts that do not add up', batchesOf({ created: 1 }, [])],
  ['counts below nothing', batchesOf({ created: 3, updated: -1 }, [])],
  ['counts that are no numbers', batchesOf({ created: '2' as unknown as number }, [])],
  ['a warning that is none', { ...batchesOf({ created: 2 }, [], [7]) }],
];

describe('with faults between client and server', () => {
  const running = runningHeadgate(testDatabases[0]!);
  let proxy: FaultyProxy;
  let apiKey: string;
  before(async () => {
    proxy = await startFaultyProxy(running.headgate.url);
    ({ key: apiKey } = await running.headgate.newKey());
  });
  after(() => proxy.close());

  function newClient(options: Partial<ClientOptions> = {}): HeadgateClient {
    return new HeadgateClient({ url: proxy.url, apiKey, retry: quick, ...options });
  }

  /** Sets the faults of the next requests, one after the other. Returns a function that returns the requests since. */
  function faults(...first: (Fault | null)[]): () => FaultyProxy['requests'] {
    const from = proxy.requests.length;
    proxy.fault = (_, number) => first[number - from] ?? null;
    return () => proxy.requests.slice(from);
  }

  const passing: [string, Fault][] = [
    ['a connection that is cut before the server saw the request', 'cut before'],
    ['a connection that is cut after the server carried it out', 'cut after'],
    ['an answer that is cut in its middle', 'cut in the answer'],
    ["a proxy's page of 502", badGateway],
    ['408', refusal(408)],
    ['409 with Retry-After', refusal(409, { 'Retry-After': '0' })],
    ['429', refusal(429, { 'Retry-After': '0' })],
    ['500', refusal(500)],
    ['503 with Retry-After as a date', refusal(503, { 'Retry-After': new Date(0).toUTCString() })],
  ];
  for (const [name, fault] of passing) {
    test(`${name}: the request is sent again under the same key and stored once`, async () => {
      const client = newClient({ maxRecordsPerRequest: 10, concurrency: 1 });
      const requestsSince = faults(null, fault, fault);
      const retries: RetryNotice[] = [];
      let last: UploadProgress | undefined;
      const { counts } = await client.upload('shops', shops(30), {
        onRetry: (retry) => retries.push(retry),
        onProgress(progress) {
          last = progress;
        },
      });
      assert.deepEqual(counts, { received: 30, created: 30, updated: 0, unchanged: 0, rejected: 0 });
      const requests = requestsSince();
      const keys = requests.map(({ headers }) => headers['idempotency-key']);
      assert.equal(requests.length, 5);
      assert.deepEqual([keys[2], keys[3]], [keys[1], keys[1]]);
      assert.equal(new Set(keys).size, 3);
      assert.deepEqual(requests[2]!.body, requests[1]!.body);
      assert.deepEqual(
        retries.map(({ attempt }) => attempt),
        [1, 2],
      );
      assert.ok(retries.every(({ reason, pauseMs }) => reason !== '' && pauseMs >= 0 && pauseMs <= 10));
      assert.equal(last?.retries, 2);
    });

    test(`${name}: an interaction is recorded once, and reads succeed`, async () => {
      const client = newClient();
      const about = shop();
      await client.upload('shops', [about]);
      faults(fault);
      const { interaction_id } = await client.record(viewOf(about, 1_700_000_000));
      faults(fault);
      const found = await Array.fromAsync(client.interactions({ item_id: about.shop_id }));
      assert.deepEqual(
        found.map((one) => one.interaction_id),
        [interaction_id],
      );
      faults(fault);
      assert.equal((await client.get('shops', about.shop_id))?.name, about.name);
    });
  }

  test('a request without a response is retried after the timeout of one try', async () => {
    const client = newClient({ requestTimeoutMs: 1000 });
    faults('silence');
    const reasons: string[] = [];
    const { counts } = await client.upload('shops', shops(3), {
      onRetry: ({ reason }) => reasons.push(reason),
    });
    assert.equal(counts.created, 3);
    assert.deepEqual(reasons, ['no response within 1 s']);
  });

  test('only the records that the store could not keep are sent again, as a new request', async () => {
    const client = newClient();
    const input = shops(6).map((record, at) => (at === 2 || at === 4 ? { ...record, region: '?' } : record));
    const failed = [0, 1, 3, 4, 5].map((index) =>
      problem(index, input[index]!.shop_id, 'store_unavailable', true),
    );
    const errors = [...failed, problem(2, input[2]!.shop_id, 'invalid_format', false)];
    const requestsSince = faults(uploadAnswer(500, 6, errors));
    let last: UploadProgress | undefined;
    const result = await client.upload('shops', input, {
      onProgress(progress) {
        assert.ok(progress.received <= 6);
        last = progress;
      },
    });
    assert.deepEqual(result.counts, { received: 6, created: 4, updated: 0, unchanged: 0, rejected: 2 });
    assert.deepEqual(
      result.errors.map(({ index, code }) => [index, code]),
      [
        [2, 'invalid_format'],
        [4, 'invalid_format'],
      ],
    );
    assert.deepEqual(last, { ...result.counts, sent: 6, retries: 1 });
    const [first, second] = requestsSince();
    assert.notEqual(first!.headers['idempotency-key'], second!.headers['idempotency-key']);
    assert.deepEqual(JSON.parse(second!.body.toString()), { records: input.filter((_, at) => at !== 2) });
    assert.equal(result.requestIds.length, 2);
  });

  test('a lasting outage of the store interrupts the upload at its position', async () => {
    const client = newClient({ maxRecordsPerRequest: 2, concurrency: 1, retry: { ...quick, attempts: 3 } });
    const input = shops(6);
    const from = proxy.requests.length;
    proxy.fault = ({ body }, number) => {
      if (number === from) return null;
      const { records } = JSON.parse(body.toString()) as { records: SentShop[] };
      const errors = records.map(({ shop_id }, at) => problem(at, shop_id, 'store_unavailable', true));
      return uploadAnswer(500, records.length, errors);
    };
    const error = await rejected(client.upload('shops', input), UploadInterruptedError);
    assert.ok(error.cause instanceof UnreachableError);
    assert.equal(error.cause.attempts, 3);
    assert.deepEqual([error.nextIndex, error.result.counts.created], [2, 2]);
    assert.equal(proxy.requests.length - from, 4);
  });

  test('when retries run out, the error names their number, the cause and what was stored', async () => {
    const client = newClient({ maxRecordsPerRequest: 5, concurrency: 3, retry: { ...quick, attempts: 4 } });
    const from = proxy.requests.length;
    proxy.fault = (_, number) => (number - from < 1 ? null : badGateway);
    const error = await rejected(client.upload('shops', shops(40)), UploadInterruptedError);
    assert.ok(error.cause instanceof UnreachableError);
    assert.match(error.cause.message, /4 tries .*502.*<h1>502 Bad Gateway/);
    assert.ok(error.cause.cause instanceof RefusedError);
    assert.equal(error.nextIndex, error.result.counts.created);

    const startMs = performance.now();
    const impatient = newClient({ retry: { ...quick, patienceMs: 100 } });
    const unreachable = await rejected(impatient.get('shops', randomUUID()), UnreachableError);
    assert.ok(unreachable.attempts > 1);
    assert.ok(performance.now() - startMs >= 100);
  });

  test('a Retry-After longer than patienceMs is not waited for', async () => {
    const client = newClient({ retry: { ...quick, patienceMs: 500 } });
    proxy.fault = () => refusal(503, { 'Retry-After': '3600' });
    const { attempts } = await rejected(client.get('shops', randomUUID()), UnreachableError);
    assert.equal(attempts, 2);
  });

  test('after an interruption the upload resumes from nextIndex without gaps or duplicates', async () => {
    const client = newClient({ maxRecordsPerRequest: 5, concurrency: 2, retry: { ...quick, attempts: 2 } });
    const input = shops(50);
    const from = proxy.requests.length;
    proxy.fault = (_, number) => (number - from === 4 ? refusal(403) : null);
    const { nextIndex, result } = await rejected(client.upload('shops', input), UploadInterruptedError);
    assert.ok(nextIndex > 0 && nextIndex < 50 && nextIndex % 5 === 0);
    assert.equal(result.counts.received, nextIndex);
    faults();
    const rest = await client.upload('shops', input.slice(nextIndex));
    assert.equal(result.counts.received + rest.counts.received, 50);
    for (const { shop_id } of input) assert.ok(await client.get('shops', shop_id), shop_id);
  });

  const strangers: [string, Fault, RegExp][] = [
    [
      'a page that is no JSON',
      { status: 200, body: `<html>${'x'.repeat(5000)}</html>` },
      /^.*200.*<html>x{190,194}…"$/,
    ],
    ['JSON of something else', { status: 200, body: '{"hello":"world"}' }, /not from Headgate.*hello/],
    ['JSON that is cut', { status: 200, body: '{"request_id":"x","batches":[{' }, /not from Headgate/],
    ['an upload answer about another number of records', uploadAnswer(200, 7, []), /not from Headgate/],
    ...garbage.map(([name, body]): [string, Fault, RegExp] => [
      `an upload answer with ${name}`,
      { status: 200, body: JSON.stringify(body) },
      /not from Headgate/,
    ]),
    ['404 from elsewhere', { status: 404, body: 'no such page' }, /404.*no such page/],
    ['nothing at all', { status: 200, body: '' }, /not from Headgate/],
    [
      'a redirect',
      { status: 301, headers: { Location: 'https://elsewhere.example/' }, body: '' },
      /redirects to https:\/\/elsewhere\.example\/; give the client the address/,
    ],
    ['409 without Retry-After', refusal(409), /It is 409/],
  ];
  for (const [name, fault, expected] of strangers) {
    test(`${name}: the call fails at once and quotes the response`, async () => {
      const client = newClient();
      const requestsSince = faults(fault, fault);
      const interrupted = await rejected(client.upload('shops', shops(2)), UploadInterruptedError);
      const error = interrupted.cause as RefusedError;
      assert.ok(error instanceof RefusedError);
      assert.match(error.message, expected);
      assert.ok(error.message.length < 400);
      await rejected(client.get('shops', randomUUID()), RefusedError);
      assert.equal(requestsSince().length, 2);
    });
  }

  test('an error code of a newer server is passed on unchanged', async () => {
    const client = newClient();
    const [one, other] = shops(2);
    faults(
      uploadAnswer(400, 2, [
        problem(0, one!.shop_id, 'too_blue', false),
        problem(1, other!.shop_id, 'required', false),
      ]),
    );
    const { errors } = await client.upload('shops', [one!, other!]);
    assert.deepEqual(
      errors.map(({ code, message }) => [code, message]),
      [
        ['too_blue', 'it is too_blue'],
        ['required', 'it is required'],
      ],
    );
  });

  test('if an asynchronous onRetry rejects, uploads and single calls reject with its error', async () => {
    const client = newClient();
    const ours = new Error('no more');
    const onRetry = async (): Promise<void> => {
      throw ours;
    };
    faults(badGateway);
    assert.equal(await rejected(client.upload('shops', shops(2), { onRetry }), Error), ours);
    faults(badGateway);
    assert.equal(await rejected(client.get('shops', randomUUID(), { onRetry }), Error), ours);
  });

  test('an interaction whose response was lost is reported as replayed', async () => {
    const client = newClient();
    const about = shop();
    await client.upload('shops', [about]);
    for (const [fault, expected] of [
      ['cut before', 0],
      ['cut after', 1],
    ] as const) {
      let replays = 0;
      faults(fault);
      await client.record(viewOf(about, 1_700_000_000), {
        onReplayed() {
          replays++;
        },
      });
      assert.equal(replays, expected, fault);
    }
  });

  test('the error names a refused connection', async () => {
    const closed = await startFaultyProxy('http://127.0.0.1:1');
    await closed.close();
    const client = newClient({ url: closed.url, retry: { attempts: 1 } });
    const error = await rejected(client.get('shops', randomUUID()), UnreachableError);
    assert.match(error.message, /failed after one try: network error: .*ECONNREFUSED/);
  });
});

describe('with a low rate limit', () => {
  const running = runningHeadgate(testDatabases[0]!, { HEADGATE_RATE_LIMIT: '5' });

  test('the client waits after 429 as long as the server asks, and everything arrives', async () => {
    const { key } = await running.headgate.newKey();
    const client = new HeadgateClient({ url: running.headgate.url, apiKey: key, maxRecordsPerRequest: 1 });
    const pauses: RetryNotice[] = [];
    const { counts } = await client.upload('shops', shops(12), { onRetry: (retry) => pauses.push(retry) });
    assert.equal(counts.created, 12);
    assert.ok(pauses.length > 0);
    assert.ok(pauses.every(({ pauseMs, reason }) => pauseMs >= 1000 && reason.startsWith('429 ')));
  });
});

forEachStore((store) => {
  test('the server is killed and started again in mid-upload: everything arrives exactly once', async () => {
    const { database, remove } = await store.newDatabase();
    let headgate: Headgate = await startHeadgate(database);
    try {
      const { key } = await headgate.newKey();
      const { port } = new URL(headgate.url);
      const client = new HeadgateClient({
        url: headgate.url,
        apiKey: key,
        maxRecordsPerRequest: 50,
        retry: { firstPauseMs: 20, longestPauseMs: 200 },
      });
      const about = shop();
      await client.upload('shops', [about]);
      const input = shops(KILLED_RECORDS);
      let restarts = 0;
      const restart = async (): Promise<void> => {
        restarts++;
        await headgate.kill();
        headgate = await startHeadgate(database, { HEADGATE_PORT: port });
      };

      let uploaded = 0;
      const restartsUnderWay: Promise<void>[] = [];
      const upload = client.upload('shops', input, {
        onProgress({ received }) {
          const isDue = received >= (restarts + 1) * RECORDS_PER_LIFE;
          if (isDue && uploaded < received) restartsUnderWay.push(restart());
          uploaded = received;
        },
      });
      const { counts, errors } = await upload;
      await Promise.all(restartsUnderWay);
      assert.ok(restarts >= LEAST_KILLS, `${restarts} restarts`);
      assert.deepEqual(errors, []);
      // A response that the kill cut off is replayed, so that nothing is counted as unchanged.
      const stored = { received: KILLED_RECORDS, created: KILLED_RECORDS };
      assert.deepEqual(counts, { ...stored, updated: 0, unchanged: 0, rejected: 0 });
      const ids = (await Array.fromAsync(client.list('shops'))).map(({ shop_id }) => shop_id);
      assert.deepEqual(ids, [about, ...input].map(({ shop_id }) => shop_id).sort());

      let recorded = 0;
      const seconds = Array.from({ length: 300 }, (_, at) => 1_700_000_000 + at);
      const workers = Array.from({ length: 8 }, async () => {
        for (let second = seconds.pop(); second !== undefined; second = seconds.pop()) {
          await client.record(viewOf(about, second));
          recorded++;
          if (recorded === 100) await restart();
        }
      });
      await Promise.all(workers);
      const interactions = await Array.fromAsync(client.interactions());
      assert.deepEqual(
        interactions.map(({ event_timestamp }) => event_timestamp),
        Array.from({ length: 300 }, (_, at) => 1_700_000_299 - at),
      );
      assert.equal(recorded, 300);
    } finally {
      await headgate.kill();
      await remove();
    }
  });
});

test('Retry-After is seconds or an HTTP date; anything else is ignored', () => {
  const nowMs = Date.parse('2024-05-01T09:30:00Z');
  const cases: [string | null, number | null][] = [
    [null, null],
    ['7', 7000],
    ['0', 0],
    ['Wed, 01 May 2024 09:30:05 GMT', 5000],
    ['Wed, 01 May 2024 09:29:00 GMT', 0],
    ['soon', null],
    ['-5', null],
    ['1.5', null],
    ['', null],
  ];
  for (const [header, expected] of cases) assert.equal(retryAfterMs(header, nowMs), expected, String(header));
});

test('pauses of zero stay zero, however often a request fails', () => {
  const patience = new Patience(retryRules({ firstPauseMs: 0, patienceMs: Infinity }));
  for (let failure = 0; failure < 1200; failure++) assert.equal(patience.pauseMs(null), 0);
});

function viewOf({ shop_id }: SentShop, second: number): SentInteraction {
  return { interaction_type: 'PAGE_VIEW', item_type: 'SHOP', item_id: shop_id, event_timestamp: second };
}

function problem(index: number, id: string, code: string, retryable: boolean): object {
  return { index, id, field: null, code, message: `it is ${code}`, retryable };
}

function batchesOf(
  counts: Readonly<Record<string, number>>,
  errors: readonly (object | null)[],
  warnings: readonly unknown[] = [],
): object {
  const all = { received: 2, created: 0, updated: 0, unchanged: 0, rejected: 0, ...counts };
  return { request_id: randomUUID(), batches: [{ batch: 1, data: { counts: all, errors, warnings } }] };
}

/** Returns a response like the server's, with one batch in which nothing is stored if there are errors. */
function uploadAnswer(status: number, received: number, errors: readonly object[]): Fault {
  const rejectedCount = errors.length === 0 ? 0 : received;
  const counts = {
    received,
    created: received - rejectedCount,
    updated: 0,
    unchanged: 0,
    rejected: rejectedCount,
  };
  const batch = { batch: 1, status, data: { counts, errors, warnings: [] } };
  return { status, body: JSON.stringify({ request_id: randomUUID(), type: 'shops', batches: [batch] }) };
}
