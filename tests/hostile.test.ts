// Hostile input gets a clear refusal, none of it is stored, and the server keeps serving other clients.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from 'node:zlib';
import type { ProblemCode } from '@headgate/catalogue/problem-codes.ts';
import { recordTypeNames } from '@headgate/catalogue/record-types.ts';
import { isTriedInFull } from '../server/store/test-databases.ts';
import {
  type Api,
  apiOf,
  problemsOf,
  type RefusalBody,
  type Reply,
  totals,
  type UploadBody,
} from './harness/api.ts';
import { brotliBomb, gzipBomb, gzipOfEmptyBlocks, zstdBomb } from './harness/bombs.ts';
import { describeOnceOn, forEachStore, type TestStore } from './harness/for-each-store.ts';
import { type Headgate, newDatabaseFolder, startHeadgate } from './harness/headgate.ts';
import { bearer, connectRaw, type RawAnswer } from './harness/raw-connection.ts';
import { fullRecord, leastRecord } from './harness/records.ts';
import { assertRefusal } from './harness/refusal.ts';
import { waitUntil } from './harness/waiting.ts';

const MIB = 1024 ** 2;
const LEVELS = 100_000;
const compressors = {
  gzip: gzipSync,
  // The default quality takes seconds for the largest bodies.
  br: (data: string | Uint8Array) =>
    brotliCompressSync(data, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  zstd: zstdCompressSync,
};
const lenient = { Prefer: 'handling=lenient' };

const shop = (given: Record<string, unknown> = {}) => leastRecord('shops', given);
const uploadOf = (...records: readonly unknown[]): string => JSON.stringify({ records });
const arrays = (inner = ''): string => '['.repeat(LEVELS) + inner + ']'.repeat(LEVELS);
const objects = (inner = '1'): string => '{"a":'.repeat(LEVELS) + inner + '}'.repeat(LEVELS);

/** Returns the JSON text of a shop, with the given raw text as one value. */
function shopWith(field: string, valueText: string): string {
  const { [field]: _, ...rest } = shop();
  return `{${JSON.stringify(rest).slice(1, -1)},${JSON.stringify(field)}:${valueText}}`;
}

function hostileSuite(store: TestStore): void {
  let headgate: Headgate;
  let removeDatabase: () => Promise<void>;
  let hostileKey: string;
  /** An organisation that must have no records at the end of every test. */
  let hostile: Api;
  /** An organisation that is served throughout. */
  let neighbour: Api;
  let pid: number | undefined;
  const statuses: number[] = [];

  const noted = async <Body>(answering: Promise<Reply<Body>>): Promise<Reply<Body>> => {
    const reply = await answering;
    statuses.push(reply.status);
    return reply;
  };
  const watched = (api: Api): Api => ({
    ...api,
    request: <Body = RefusalBody>(...args: Parameters<Api['request']>) => noted(api.request<Body>(...args)),
    upload: (...args) => noted(api.upload(...args)),
    record: <Body>(...args: Parameters<Api['record']>) => noted(api.record<Body>(...args)),
  });
  const post = (
    body: string | Uint8Array,
    headers: Readonly<Record<string, string>> = {},
    path = '/v1/data/shops',
  ) => hostile.request(path, { body, headers });
  const postInteraction = (body: string | Uint8Array) => post(body, {}, '/user-interactions');

  /** Writes to a new connection and returns the responses. */
  const exchange = async (
    parts: readonly (string | Uint8Array)[],
    { endSending = false, answers = 1 } = {},
  ): Promise<readonly RawAnswer[]> => {
    const connection = await connectRaw(headgate.url);
    try {
      for (const part of parts) connection.write(part);
      if (endSending) connection.endSending();
      const received: RawAnswer[] = [];
      while (received.length < answers) received.push(await connection.answer());
      statuses.push(...received.map(({ status }) => status));
      return received;
    } finally {
      connection.destroy();
    }
  };
  const headOf = (
    headers: Readonly<Record<string, string>>,
    requestLine = 'POST /v1/data/shops HTTP/1.1',
  ): string => {
    const all = { Host: 'headgate', ...bearer(hostileKey), 'Content-Type': 'application/json', ...headers };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    return `${requestLine}\r\n${lines.join('')}\r\n`;
  };
  const assertRawRefusal = ({ status, text }: RawAnswer, expected: number, says: RegExp): void => {
    assert.equal(status, expected, text);
    const body = JSON.parse(text) as RefusalBody;
    assert.deepEqual(Object.keys(body), ['error', 'message', 'request_id']);
    assert.match(body.message, says);
  };
  const assertServed = async (): Promise<void> => {
    const record = shop();
    assert.equal((await neighbour.upload('shops', [record])).status, 200);
    assert.equal((await neighbour.read('shops', record.shop_id as string)).status, 200);
  };

  before(async () => {
    const { database, remove } = await store.newDatabase();
    removeDatabase = remove;
    headgate = await startHeadgate(database);
    pid = headgate.process.pid;
    hostileKey = (await headgate.newKey('hostile')).key;
    hostile = watched(apiOf(headgate.url, hostileKey));
    neighbour = apiOf(headgate.url, (await headgate.newKey('neighbour')).key);
  });

  afterEach(async () => {
    assert.deepEqual((await hostile.list('shops', '?include_deleted=true')).body.records, []);
    assert.deepEqual((await hostile.interactions()).body.interactions, []);
    await assertServed();
  });

  after(async () => {
    await headgate.stop();
    await removeDatabase();
  });

  describe('in a record that the store is asked about', () => {
    test('keys of prototypes do not affect later records', async () => {
      const evil = '{"is_deleted":true,"is_public":true,"name":"evil","records":[],"refusal":"x"}';
      await post(`{"records":[${shopWith('__proto__', evil)}],"__proto__":${evil}}`);
      await post(`{"records":[${shopWith('constructor', `{"prototype":${evil}}`)}]}`);
      await postInteraction(`{"__proto__":${evil},"constructor":{"prototype":${evil}}}`);
      const dropped = shopWith('__proto__', evil);
      const record = JSON.parse(dropped) as Record<string, unknown>;
      const lenientReply = await neighbour.request<UploadBody>('/v1/data/shops', {
        body: `{"records":[${dropped}]}`,
        headers: lenient,
      });
      assert.equal(lenientReply.status, 200);
      const shown = (await neighbour.read('shops', record.shop_id as string)).body;
      assert.equal(shown.is_deleted, false);
      assert.equal(shown.is_public, null);
      assert.equal((await neighbour.upload('shops', [{ shop_id: randomUUID(), region: 'GB' }])).status, 400);
    });

    test('10,000 escaped characters are returned as the text that they encode', async () => {
      for (const [spelt, meant] of [
        ['\\\\', '\\'],
        ['\\"', '"'],
        ['\\u005c', '\\'],
        ['\\ud83d\\ude00', '😀'],
        ['\\u0001', '\u0001'],
      ] as const) {
        const record = shopWith('name', `"${spelt.repeat(10_000)}"`);
        const { shop_id } = JSON.parse(record) as { shop_id: string };
        const { status } = await neighbour.request('/v1/data/shops', { body: `{"records":[${record}]}` });
        assert.equal(status, 200);
        assert.equal((await neighbour.read('shops', shop_id)).body.name, meant.repeat(10_000));
      }
    });

    test('problems of references count towards the limit of listed problems', async () => {
      const record = () => ({
        ...leastRecord('shop-categories', { shop_id: randomUUID(), category_id: randomUUID() }),
        region: '?',
      });
      const { status, body } = await hostile.upload('shop-categories', Array.from({ length: 5000 }, record));
      assert.equal(status, 400);
      const problems = problemsOf(body);
      assert.equal(new Set(problems.map(({ index }) => index)).size, 5000);
      assert.equal(problems.length, 2 * 5000);
      assert.equal(
        body.batches.reduce((sum, { data }) => sum + (data.errors_omitted ?? 0), 0),
        5000,
      );
    });

    test('records, references and replays of another organisation are not accessible', async () => {
      const theirs = shop();
      const idempotency = { 'Idempotency-Key': 'shared' };
      const first = await neighbour.upload('shops', [theirs], { headers: idempotency });
      assert.equal(first.status, 200);
      const id = theirs.shop_id as string;
      assert.equal((await hostile.read('shops', id)).status, 404);
      const replayed = await hostile.upload('branches', [leastRecord('branches', { shop_id: id })], {
        headers: idempotency,
      });
      assert.equal(replayed.headers.get('idempotency-replayed'), null);
      assert.deepEqual(
        problemsOf(replayed.body).map(({ field, code }) => [field, code]),
        [['shop_id', 'unknown_reference']],
      );
      const sameBody = await hostile.upload('shops', [{ ...theirs, colour: 1 }], { headers: idempotency });
      assert.equal(sameBody.status, 400);
      const { body } = await hostile.record<RefusalBody>({
        interaction_type: 'SHARE',
        item_type: 'SHOP',
        item_id: id,
        event_timestamp: 1,
      });
      assert.deepEqual(
        body.details?.map(({ field, code }) => [field, code]),
        [['item_id', 'unknown_reference']],
      );
      assert.deepEqual((await neighbour.read('shops', id)).body.name, theirs.name);
    });
  });

  describeOnceOn(store, 'in the body as a whole', () => {
    const good = JSON.stringify(shop());
    const refused: Readonly<Record<string, readonly [body: string | Uint8Array, says: RegExp]>> = {
      'no bytes at all': ['', /not valid JSON/],
      'JSON that stops early': [uploadOf(shop()).slice(0, -2), /not valid JSON/],
      'JSON with something after its end': [`${uploadOf(shop())}]`, /not valid JSON/],
      'a trailing comma': [`{"records":[${good},]}`, /not valid JSON/],
      'single quotes': ["{'records':[]}", /not valid JSON/],
      'a comment': [`{"records":[${good}]/**/}`, /not valid JSON/],
      NaN: [`{"records":[NaN]}`, /not valid JSON/],
      'a raw line break inside a text': [`{"records":["a\nb"]}`, /not valid JSON/],
      'a raw NUL between tokens': [`{"records":\0[${good}]}`, /not valid JSON/],
      'an unknown escape': [`{"records":["\\x41"]}`, /not valid JSON/],
      'half an escape': [`{"records":["\\u00"]}`, /not valid JSON/],
      'a key said twice at the top': [`{"records":[${good}],"records":[]}`, /"records" twice/],
      'a key said twice in a record': [
        uploadOf(shop()).replace('{"shop_id"', '{"name":"x","shop_id"'),
        /"name" twice/,
      ],
      'a key said twice, once with escapes': [
        uploadOf(shop()).replace('{"shop_id"', '{"\\u006eame":"x","shop_id"'),
        /"name" twice/,
      ],
      'a key said twice, once with a space before its colon': [
        uploadOf(shop()).replace('{"shop_id"', '{"name" :"x","shop_id"'),
        /"name" twice/,
      ],
      'bytes that are not UTF-8': [Buffer.from(uploadOf(shop({ name: 'é' })), 'latin1'), /not valid UTF-8/],
      'a surrogate encoded in UTF-8': [Buffer.from('7b22a0eda08022', 'hex'), /not valid UTF-8/],
      'UTF-16': [Buffer.from(uploadOf(shop()), 'utf16le'), /not valid JSON/],
      'two byte order marks': [`\uFEFF\uFEFF${uploadOf(shop())}`, /not valid JSON/],
      'an array in the place of the object': [`[${good}]`, /must be an object .* not an array/],
      'null in the place of the object': ['null', /must be an object .* not null/],
      'a text in the place of the object': ['"records"', /must be an object .* not a string/],
      'an object without records': ['{}', /no "records"/],
      'records inherited from __proto__': [`{"__proto__":{"records":[${good}]}}`, /no "records"/],
      'an object in the place of records': [
        `{"records":${good}}`,
        /must be an array of shops, not an object/,
      ],
      'null in the place of records': ['{"records":null}', /must be an array of shops, not null/],
      'no record in records': ['{"records":[]}', /empty/],
      '5001 records': [uploadOf(...Array.from({ length: 5001 }, () => shop())), /5001 records.*at most 5000/],
      'a stranger beside records': [`{"records":[${good}],"rows":[]}`, /unknown field "rows"/],
      '__proto__ beside records': [`{"records":[${good}],"__proto__":{}}`, /unknown field "__proto__"/],
      'constructor beside records': [`{"records":[${good}],"constructor":{}}`, /unknown field "constructor"/],
      'nested arrays': [arrays(), /must be an object/],
      'nested objects': [objects(), /no "records"/],
      'nested objects in the place of records': [`{"records":${objects()}}`, /must be an array/],
      'nested arrays that are never closed': ['['.repeat(LEVELS), /not valid JSON/],
      'a repeated key below nested objects': [objects('{"b":1,"b":2}'), /"b" twice/],
      '2 million keys': [
        `{"records":[{${Array.from({ length: 2_000_000 }, (_, at) => `"k${at}":1`).join()}}]}`,
        /more than \d+ keys and elements; send at most 5000 records/,
      ],
      '300,000 records': [
        `{"records":[${'{},'.repeat(300_000)}{}]}`,
        /more than \d+ objects and arrays; send at most 5000 records/,
      ],
      '16 million zeros': [
        `{"records":[{"name":[${'0,'.repeat(15_999_999)}0]}]}`,
        /more than \d+ keys and elements; send at most 5000 records/,
      ],
      '30 MB of empty arrays': [
        `{"records":[${'[],'.repeat(10_000_000)}1]}`,
        /more than \d+ objects and arrays/,
      ],
      '100,000 strangers beside records': [
        JSON.stringify({
          ...Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`k${at}`, at])),
          records: [1],
        }),
        /unknown field "k0"/,
      ],
    };
    for (const [what, [body, says]] of Object.entries(refused)) {
      test(`${what}: the upload is refused as a whole`, async () => {
        assertRefusal(await post(body), 400, says);
      });
    }

    const interactionRefused: Readonly<Record<string, readonly [body: string | Uint8Array, says: RegExp]>> = {
      'no bytes at all': ['', /not valid JSON/],
      'JSON that stops early': ['{"item_type":', /not valid JSON/],
      'a key said twice': ['{"item_type":"SHOP","item_type":"TAG"}', /"item_type" twice/],
      'bytes that are not UTF-8': [Buffer.from('{"city":"Kraków"}', 'latin1'), /not valid UTF-8/],
      'a repeated key below nested arrays': [arrays('{"b":1,"b":2}'), /"b" twice/],
    };
    for (const [what, [body, says]] of Object.entries(interactionRefused)) {
      test(`${what}: the interaction is refused`, async () => {
        assertRefusal(await postInteraction(body), 400, says);
      });
    }

    test('an interaction that is not an object is refused', async () => {
      for (const body of ['null', '[]', '"x"', '1', arrays()]) {
        const reply = await postInteraction(body);
        assert.equal(reply.status, 400);
        assert.deepEqual(
          reply.body.details?.map(({ field, code }) => ({ field, code })),
          [{ field: null, code: 'not_an_object' }],
        );
      }
    });

    test('one byte order mark is ignored', async () => {
      const record = shop();
      const { status } = await neighbour.request('/v1/data/shops', { body: `\uFEFF${uploadOf(record)}` });
      assert.equal(status, 200);
      assert.equal((await neighbour.read('shops', record.shop_id as string)).body.name, record.name);
    });
  });

  describeOnceOn(store, 'in a record', () => {
    const customer = fullRecord('customers');
    const transaction = fullRecord('transactions');
    const flawed: Readonly<
      Record<string, readonly [type: string, record: string, field: string | null, code: ProblemCode]>
    > = {
      'a NUL in a text': ['shops', shopWith('name', '"a\\u0000b"'), 'name', 'invalid_format'],
      'a lone high surrogate': ['shops', shopWith('name', '"\\ud800"'), 'name', 'invalid_format'],
      'a lone low surrogate': ['shops', shopWith('name', '"x\\uDC00"'), 'name', 'invalid_format'],
      'surrogates in the wrong order': [
        'shops',
        shopWith('name', '"\\udc00\\ud800"'),
        'name',
        'invalid_format',
      ],
      'a text of 10,001 escaped backslashes': [
        'shops',
        shopWith('name', `"${'\\\\'.repeat(10_001)}"`),
        'name',
        'too_long',
      ],
      'a text of 31 million characters': [
        'shops',
        shopWith('name', `"${'x'.repeat(31_000_000)}"`),
        'name',
        'too_long',
      ],
      'a UUID in braces': ['shops', shopWith('shop_id', `"{${randomUUID()}}"`), 'shop_id', 'invalid_format'],
      'the 30th of February': [
        'customers',
        JSON.stringify({ ...customer, birthdate: '2024-02-30' }),
        'birthdate',
        'invalid_format',
      ],
      'the year 10000': [
        'shops',
        shopWith('created', '"10000-01-01T00:00:00Z"'),
        'created',
        'invalid_format',
      ],
      'a text for a boolean': ['shops', shopWith('is_public', '"true"'), 'is_public', 'wrong_type'],
      'a number for a boolean': ['shops', shopWith('is_public', '1'), 'is_public', 'wrong_type'],
      'an array for a text': ['shops', shopWith('name', '["x"]'), 'name', 'wrong_type'],
      'an object for a text': ['shops', shopWith('name', '{"toString":"x"}'), 'name', 'wrong_type'],
      'nested arrays for a text': ['shops', shopWith('name', arrays()), 'name', 'wrong_type'],
      'nested objects for an id': ['shops', shopWith('shop_id', objects()), 'shop_id', 'wrong_type'],
      'nested arrays in an unknown field': ['shops', shopWith('colour', arrays()), 'colour', 'unknown_field'],
      'an array for the record': ['shops', `[${JSON.stringify(shop())}]`, null, 'not_an_object'],
      'nested arrays for the record': ['shops', arrays(), null, 'not_an_object'],
      'null for the record': ['shops', 'null', null, 'not_an_object'],
      'a field named __proto__': [
        'shops',
        shopWith('__proto__', '{"is_deleted":true}'),
        '__proto__',
        'unknown_field',
      ],
      'a field named constructor': [
        'shops',
        shopWith('constructor', '{"prototype":{}}'),
        'constructor',
        'unknown_field',
      ],
      'a field named toString': ['shops', shopWith('toString', '"x"'), 'toString', 'unknown_field'],
      'an empty field name': ['shops', shopWith('', '1'), '', 'unknown_field'],
    };
    for (const [what, [type, record, field, code]] of Object.entries(flawed)) {
      test(`${what} is refused as ${code}`, async () => {
        const reply = await hostile.request<UploadBody>(`/v1/data/${type}`, {
          body: `{"records":[${record}]}`,
        });
        assert.equal(reply.status, 400);
        assert.deepEqual(
          problemsOf(reply.body).map((problem) => ({ field: problem.field, code: problem.code })),
          [{ field, code }],
        );
        assert.ok(reply.text.length < 5000, 'the response repeats the input');
      });
    }

    for (const number of ['1e400', '-1e400', `1${'0'.repeat(400)}`]) {
      test(`the number ${number.slice(0, 6)} that double precision cannot hold is out of range`, async () => {
        const { amount: _, ...rest } = transaction;
        const record = `{${JSON.stringify(rest).slice(1, -1)},"amount":${number}}`;
        const { status, body } = await hostile.request<UploadBody>('/v1/data/transactions', {
          body: `{"records":[${record}]}`,
        });
        assert.equal(status, 400);
        const found = problemsOf(body).find(({ field }) => field === 'amount');
        assert.equal(found?.code, 'out_of_range');
      });
    }

    test('a field inherited from __proto__ does not replace a missing one', async () => {
      const { name: _, ...nameless } = shop();
      const text = `{${JSON.stringify(nameless).slice(1, -1)},"__proto__":{"name":"inherited"}}`;
      for (const headers of [{}, lenient]) {
        const { status, body } = await hostile.request<UploadBody>('/v1/data/shops', {
          body: `{"records":[${text}]}`,
          headers,
        });
        assert.equal(status, 400);
        assert.ok(problemsOf(body).some(({ field, code }) => field === 'name' && code === 'required'));
      }
    });

    test('100,000 unknown fields are reported as the first 20 of them', async () => {
      const strangers = Object.fromEntries(
        Array.from({ length: 100_000 }, (_, at) => [`stranger_${at}`, at]),
      );
      const { status, body } = await hostile.upload('shops', [{ ...strangers, ...shop() }]);
      assert.equal(status, 400);
      assert.deepEqual(
        problemsOf(body).map(({ field, code }) => [field, code]),
        Array.from({ length: 20 }, (_, at) => [`stranger_${at}`, 'unknown_field']),
      );
      assert.equal(body.batches[0]!.data.errors_omitted, 99_980);
    });

    test('100,000 unknown fields are dropped and counted in a lenient upload', async () => {
      const strangers = Object.fromEntries(
        Array.from({ length: 100_000 }, (_, at) => [`stranger_${at}`, at]),
      );
      const record = shop();
      const { status, body } = await neighbour.upload('shops', [{ ...strangers, ...record }], {
        headers: lenient,
      });
      assert.equal(status, 200);
      const { warnings } = body.batches[0]!.data;
      assert.ok(warnings.length <= 101);
      assert.equal(
        warnings.reduce((sum, { count }) => sum + count, 0),
        100_000,
      );
      assert.equal((await neighbour.read('shops', record.shop_id as string)).body.name, record.name);
    });

    test('a field name of 10 MB is truncated in the response', async () => {
      const long = 'k'.repeat(10_000_000);
      for (const headers of [{}, lenient]) {
        const { status, body, text } = await hostile.request<UploadBody>('/v1/data/shops', {
          body: `{"records":[{"${long}":1}]}`,
          headers,
        });
        assert.equal(status, 400);
        assert.ok(text.length < 5000);
        const named = [...problemsOf(body), ...body.batches[0]!.data.warnings].map(({ field }) => field);
        assert.ok(named.includes(long.slice(0, 100)));
      }
    });

    test('5000 records with 30 unknown fields each are all reported, omitted problems counted', async () => {
      const strangers = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`stranger_${at}`, null]));
      const { status, body, text } = await hostile.upload(
        'shops',
        Array.from({ length: 5000 }, () => ({ ...shop(), ...strangers })),
      );
      assert.equal(status, 400);
      assert.equal(totals(body).rejected, 5000);
      const problems = problemsOf(body);
      assert.equal(new Set(problems.map(({ index }) => index)).size, 5000);
      assert.equal(problems.filter(({ index }) => index === 0).length, 20);
      assert.equal(problems.filter(({ index }) => index === 4999).length, 1);
      const omitted = body.batches.reduce((sum, { data }) => sum + (data.errors_omitted ?? 0), 0);
      assert.equal(problems.length + omitted, 5000 * 30);
      assert.match(body.batches[4]!.data.error!, /\(1000 × unknown_field, 29000 more not listed\)/);
      assert.ok(text.length < 4 * 1024 * 1024, `the response has ${text.length} characters`);
    });

    test('unknown fields with long names that need escapes do not make a response of many megabytes', async () => {
      const records = Array.from({ length: 5000 }, () => ({
        ...shop(),
        ['\u0001'.repeat(100)]: 1,
        ['\u0002'.repeat(100)]: 1,
      }));
      const { status, text } = await hostile.upload('shops', records);
      assert.equal(status, 400);
      assert.ok(text.length < 5 * 1024 * 1024, `the response has ${text.length} characters`);
    });

    test('an invalid key is refused before anything else is checked', async () => {
      const [keyId] = hostileKey.match(/^hg_[^_]+_/)!;
      for (const key of [
        '',
        'x',
        keyId,
        `${hostileKey}x`,
        hostileKey.slice(0, -1),
        'k'.repeat(8000),
        '__proto__',
      ]) {
        const stranger = apiOf(headgate.url, key);
        for (const path of ['/v1/data/shops', '/v1/nothing', '/user-interactions']) {
          const { status, body } = await stranger.request(path, { body: arrays() });
          assert.equal(status, 401);
          assert.equal(body.error, 'Unauthorized');
        }
      }
    });
  });

  describeOnceOn(store, 'in its size and encoding', () => {
    const large = Buffer.alloc(33 * MIB, ' ');
    large.write('{"records":[]}');

    test('33 MiB are too large, with or without a Content-Length', async () => {
      assertRefusal(await post(large), 413, /larger than 33554432 bytes/);
      const stream = new ReadableStream({
        start(controller) {
          for (let from = 0; from < large.length; from += MIB)
            controller.enqueue(large.subarray(from, from + MIB));
          controller.close();
        },
      });
      const response = await fetch(`${headgate.url}/v1/data/shops`, {
        method: 'POST',
        headers: { ...bearer(hostileKey), 'Content-Type': 'application/json' },
        body: stream,
        duplex: 'half',
      });
      assert.equal(response.status, 413);
      assert.match(((await response.json()) as RefusalBody).message, /larger than 33554432 bytes/);
    });

    test('a Content-Length of many digits is too large or invalid', async () => {
      const [answer] = await exchange([headOf({ 'Content-Length': '9007199254740993' })]);
      assertRawRefusal(answer!, 413, /larger than/);
      const [overflow] = await exchange([headOf({ 'Content-Length': '9'.repeat(30) })]);
      assertRawRefusal(overflow!, 400, /not a valid HTTP/);
    });

    test('a body of exactly the largest size is read', async () => {
      const body = Buffer.alloc(32 * MIB, ' ');
      body.write('{"records":[]}');
      assertRefusal(await post(body), 400, /empty/);
    });

    for (const [encoding, compress] of Object.entries(compressors)) {
      const encoded = { 'Content-Encoding': encoding };
      const packed = compress(uploadOf(...Array.from({ length: 50 }, () => shop())));

      test(`33 MiB compressed with ${encoding} are too large`, async () => {
        assertRefusal(await post(compress(large), encoded), 413, /larger than 33554432 bytes/);
      });

      test(`a truncated, corrupt, plain or overlong ${encoding} body is refused`, async () => {
        const corrupt = Buffer.from(packed);
        corrupt.fill(0xff, 4, packed.length - 4);
        for (const body of [
          packed.subarray(0, packed.length / 2),
          packed.subarray(0, -1),
          corrupt,
          Buffer.concat([packed, Buffer.from('and more')]),
          Buffer.from(uploadOf(shop())),
          new Uint8Array(),
        ]) {
          assertRefusal(await post(body, encoded), 400, new RegExp(`not valid ${encoding}`));
        }
      });

      test(`a body compressed twice with ${encoding} is refused, as it is decompressed once`, async () => {
        assertRefusal(await post(compress(packed), encoded), 400, /not valid (UTF-8|JSON)/);
      });
    }

    test('parts that were compressed separately are one body if the encoding allows it', async () => {
      const body = Buffer.from(uploadOf(shop(), shop()));
      const parts = [body.subarray(0, 40), body.subarray(40)];
      for (const encoding of ['gzip', 'zstd'] as const) {
        const { status, body: answer } = await neighbour.request<UploadBody>('/v1/data/shops?dry_run=true', {
          body: Buffer.concat(parts.map((part) => compressors[encoding](part))),
          headers: { 'Content-Encoding': encoding },
        });
        assert.equal(status, 200);
        assert.equal(totals(answer).created, 2);
      }
      const frames = Buffer.concat(new Array(200_000).fill(zstdCompressSync('')));
      assertRefusal(
        await post(frames, { 'Content-Encoding': 'zstd' }),
        400,
        /not valid zstd: more than \d+ frames/,
      );
      const members = Buffer.concat(new Array(200_000).fill(gzipSync('')));
      assertRefusal(
        await post(members, { 'Content-Encoding': 'gzip' }),
        400,
        /not valid gzip: more than \d+ members/,
      );
    });

    const bombs = { gzip: gzipBomb, br: brotliBomb, zstd: zstdBomb };
    for (const [encoding, makeBomb] of Object.entries(bombs)) {
      test(`a ${encoding} bomb of a gigabyte is too large, for interactions too`, async () => {
        const bomb = await makeBomb();
        assert.ok(bomb.byteLength < 1.1 * MIB);
        const headers = { 'Content-Encoding': encoding };
        assertRefusal(await post(bomb, headers), 413, /after decompression/);
        assertRefusal(await post(bomb, headers, '/user-interactions'), 413, /after decompression/);
      });
    }

    test('a body that takes long to decompress delays no other compressed body', async () => {
      const headers = { 'Content-Encoding': 'gzip' };
      let isHostileAnswered = false;
      const slow = post(gzipOfEmptyBlocks(31 * MIB), headers).finally(() => {
        isHostileAnswered = true;
      });
      await sleep(200);
      const records = Array.from({ length: 100 }, () => shop());
      const body = gzipSync(uploadOf(...records));
      const { status } = await neighbour.request('/v1/data/shops', { body, headers });
      assert.equal(status, 200);
      assert.equal(isHostileAnswered, false, 'the hostile body got its response first');
      assertRefusal(await slow, 400, /not valid JSON/);
    });

    test('an unknown encoding, or more than one, is refused with a list of the known ones', async () => {
      for (const encoding of [
        'deflate',
        'compress',
        'gzip, gzip',
        'br,gzip',
        'gzip;q=1',
        'x',
        ',',
        '__proto__',
      ]) {
        const reply = await post(gzipSync(uploadOf(shop())), { 'Content-Encoding': encoding });
        assertRefusal(reply, 415, /gzip, br, zstd/);
        assert.equal(reply.headers.get('accept-encoding'), 'gzip, br, zstd');
      }
    });

    test('a content type that is not JSON in UTF-8 is refused', async () => {
      for (const type of [
        'text/plain',
        'application/x-www-form-urlencoded',
        'application/xml',
        'application/jsonp',
        'application/json; charset=latin1',
        'application/json; charset=utf-16',
        'json',
        '',
        ';',
      ]) {
        assertRefusal(await post(uploadOf(shop()), { 'Content-Type': type }), 415, /application\/json/);
      }
      const body = uploadOf(shop());
      const bare = `POST /v1/data/shops HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${hostileKey}\r\nContent-Length: ${body.length}\r\n\r\n`;
      const [answer] = await exchange([bare, body]);
      assertRawRefusal(answer!, 415, /application\/json/);
    });

    test('a content type that spells JSON in UTF-8 differently is accepted', async () => {
      for (const type of [
        'application/json; charset=utf-8',
        'Application/JSON;charset="UTF-8"',
        'application/json ;charset=UTF8',
      ]) {
        const { status } = await neighbour.request('/v1/data/shops', {
          body: uploadOf(shop()),
          headers: { 'Content-Type': type },
        });
        assert.equal(status, 200, type);
      }
    });
  });

  describeOnceOn(store, 'in how it is sent', () => {
    const body = uploadOf(shop());
    const length = String(Buffer.byteLength(body));
    const half = body.slice(0, body.length / 2);
    const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

    test('nothing is stored of a body that is cut off half-way', async () => {
      for (const [headers, sent] of [
        [{ 'Content-Length': length }, half],
        [{ 'Content-Length': String(body.length + 1) }, body],
        [{ 'Transfer-Encoding': 'chunked' }, chunk(half)],
        [{ 'Transfer-Encoding': 'chunked' }, chunk(body)],
        [{ 'Transfer-Encoding': 'chunked' }, `${chunk(body)}0\r\n`],
        [{ 'Transfer-Encoding': 'chunked' }, chunk(body).slice(0, -20)],
      ] as const) {
        const [answer] = await exchange([headOf(headers), sent], { endSending: true });
        assertRawRefusal(answer!, 400, /cut off before its end/);
        const connection = await connectRaw(headgate.url);
        connection.write(headOf({ ...headers, Expect: '100-continue' }));
        assert.equal((await connection.answer()).status, 100);
        connection.write(sent);
        await sleep(20);
        connection.destroy();
      }
    });

    const refused: Readonly<Record<string, readonly (string | Uint8Array)[]>> = {
      'words that are no request': ['hello?\r\n\r\n'],
      'a request line without a path': ['GET\r\n\r\n'],
      'an unknown version': ['GET /livez HTTP/9.9\r\nHost: x\r\n\r\n'],
      'the first bytes of TLS': [Buffer.from('1603010200010001fc0303', 'hex'), '\r\n\r\n'],
      'a header without a colon': ['GET /livez HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n'],
      'a header name with a space': ['GET /livez HTTP/1.1\r\nHost: x\r\nA b: c\r\n\r\n'],
      'a NUL in a header': ['GET /livez HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n'],
      'a request line with a raw line feed': ['GET /livez\n HTTP/1.1\r\nHost: x\r\n\r\n'],
    };
    for (const [what, parts] of Object.entries(refused)) {
      test(`${what} gets 400 and the end of the connection`, async () => {
        const [answer] = await exchange(parts);
        assertRawRefusal(answer!, 400, /not a valid HTTP\/1\.1 request/);
        assert.equal(answer!.headers.get('connection'), 'close');
      });
    }

    test('an unknown method gets 405 and the allowed ones', async () => {
      const [answer] = await exchange(['FETCH /v1/data/shops HTTP/1.1\r\nHost: x\r\n\r\n']);
      assertRawRefusal(answer!, 405, /HEAD, GET, POST/);
      assert.equal(answer!.headers.get('allow'), 'HEAD, GET, POST');
    });

    test('an expectation that cannot be met gets 417', async () => {
      const [answer] = await exchange([`${headOf({ 'Content-Length': length, Expect: 'magic' })}${body}`]);
      assertRawRefusal(answer!, 417, /100-continue/);
    });

    const smuggled = `GET /v1/data/shops HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer none\r\n\r\n`;
    const ambiguous: Readonly<Record<string, string>> = {
      'both a length and chunks': `Content-Length: ${length}\r\nTransfer-Encoding: chunked\r\n`,
      'both chunks and a length': `Transfer-Encoding: chunked\r\nContent-Length: ${length}\r\n`,
      'two lengths': `Content-Length: ${length}\r\nContent-Length: 5\r\n`,
      'a list of lengths': `Content-Length: ${length}, 5\r\n`,
      'a negative length': 'Content-Length: -5\r\n',
      'a length with a sign': `Content-Length: +${length}\r\n`,
      'a length in hexadecimal': 'Content-Length: 0x10\r\n',
      'chunks that are then not chunks': 'Transfer-Encoding: chunked, identity\r\n',
      'chunks in an unknown coding': 'Transfer-Encoding: xchunked\r\n',
      'a length with a space before its colon': `Content-Length : ${length}\r\n`,
      'a folded header': `X-Folded: a\r\n b\r\n Transfer-Encoding: chunked\r\nContent-Length: ${length}, 1\r\n`,
      'a header ended by a bare line feed': `X-A: b\nContent-Length: ${length}\r\n`,
    };
    for (const [what, headers] of Object.entries(ambiguous)) {
      test(`${what} cannot smuggle a second request`, async () => {
        const requestHead = `POST /v1/data/shops HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${hostileKey}\r\nContent-Type: application/json\r\n${headers}\r\n`;
        const connection = await connectRaw(headgate.url);
        connection.write(`${requestHead}${body}${smuggled}`);
        const answer = await connection.answer();
        statuses.push(answer.status);
        assertRawRefusal(answer, 400, /not a valid HTTP\/1\.1 request|Transfer-Encoding/);
        await connection.ended;
        await assert.rejects(connection.answer());
        connection.destroy();
      });
    }

    for (const [what, size] of Object.entries({
      'a chunk size that overflows': 'f'.repeat(17),
      'a chunk size that is no number': 'xyz',
      'a negative chunk size': '-5',
      'an empty chunk size': '',
    })) {
      test(`${what} is refused`, async () => {
        const [answer] = await exchange([
          headOf({ 'Transfer-Encoding': 'chunked' }),
          `${size}\r\n${body}\r\n0\r\n\r\n`,
        ]);
        assertRawRefusal(answer!, 400, /./);
      });
    }

    test('a body longer than its length is refused, and with it the connection', async () => {
      const connection = await connectRaw(headgate.url);
      connection.write(headOf({ 'Content-Length': String(half.length) }) + body);
      assertRawRefusal(await connection.answer(), 400, /not valid JSON|not a request/);
      await connection.ended;
    });

    test('HTTP/1.1 without a host is refused', async () => {
      const [answer] = await exchange(['GET /livez HTTP/1.1\r\n\r\n']);
      assertRawRefusal(answer!, 400, /Host is missing/);
    });

    test('HTTP/1.0 is served', async () => {
      const record = uploadOf({ ...shop(), colour: 1 });
      const [answer] = await exchange([
        headOf({ 'Content-Length': String(record.length) }, 'POST /v1/data/shops HTTP/1.0'),
        record,
      ]);
      assert.equal(answer!.status, 400);
      assert.equal(problemsOf(JSON.parse(answer!.text) as UploadBody)[0]!.code, 'unknown_field');
    });

    test('headers of 100 KB, or thousands of them, are too large', async () => {
      for (const headers of [
        { 'X-Large': 'x'.repeat(100_000) },
        { Authorization: `Bearer ${'x'.repeat(100_000)}` },
        Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`X-${at}`, '1'])),
      ]) {
        const [answer] = await exchange([headOf(headers)]);
        assertRawRefusal(answer!, 431, /larger than 16 KiB/);
      }
    });

    test('hundreds of small headers are accepted', async () => {
      const many = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`X-${at}`, '1']));
      const [answer] = await exchange([headOf({ ...many, 'Content-Length': '2' }), '{}']);
      assertRawRefusal(answer!, 400, /no "records"/);
    });

    test('a malformed or unknown path is refused', async () => {
      for (const path of ['/v1/data/%ZZ', '/v1/data/%', '/v1/data/%C3%28', '/v1/data/shops/%E0%A4%A']) {
        assertRefusal(await hostile.request(path), 400, /./);
      }
      for (const path of [
        `/v1/data/${'x'.repeat(5000)}`,
        '/v1/data/__proto__',
        '/v1/data/constructor',
        '/v1/data/toString',
        '/v1/data/SHOPS',
        '/v1/data/shops%00',
        '/v1/data/shops%2F',
        '/v1/data/shops/..%2f..%2fkeys',
        '/v1/data/shops//',
        `/v1/data/shops/{${randomUUID()}}`,
        `/v1/data/shops/${'0'.repeat(9000)}`,
        "/v1/data/shops/'%20OR%201=1--",
      ]) {
        assertRefusal(await hostile.request(path), 404, /./);
      }
      const [answer] = await exchange([headOf({}, `GET /v1/data/${'x'.repeat(100_000)} HTTP/1.1`)]);
      assertRawRefusal(answer!, 431, /larger than 16 KiB/);
    });

    test('a query that is unknown, repeated or out of range is refused', async () => {
      for (const query of [
        'limit=0',
        'limit=1001',
        'limit=-1',
        'limit=1e2',
        'limit=',
        'limit=1&limit=2',
        'cursor=x',
        `cursor=${'A'.repeat(8000)}`,
        `cursor=${Buffer.from("' OR 1=1").toString('base64url')}`,
        'include_deleted=yes',
        '__proto__=1',
        'constructor=1',
        'limit[]=1',
        '%ZZ=1',
      ]) {
        assertRefusal(await hostile.request(`/v1/data/shops?${query}`), 400, /./);
      }
    });

    test('a client that sends one byte at a time delays no other client', async () => {
      const slow = await connectRaw(headgate.url);
      const bytes = headOf({ 'Content-Length': '2' });
      let served = 0;
      for (const byte of bytes) {
        slow.write(byte);
        if (served < bytes.length / 20) {
          await assertServed();
          served++;
        }
      }
      slow.write('{');
      await assertServed();
      slow.write('}');
      const answer = await slow.answer();
      slow.destroy();
      assertRawRefusal(answer, 400, /no "records"/);
    });

    test('a client that sends Expect: 100-continue gets 100', async () => {
      const connection = await connectRaw(headgate.url);
      connection.write(headOf({ 'Content-Length': '2', Expect: '100-continue' }));
      assert.equal((await connection.answer()).status, 100);
      connection.write('{}');
      assertRawRefusal(await connection.answer(), 400, /no "records"/);
      connection.destroy();
    });

    test('pipelined requests are answered in order', async () => {
      const request = (text: string): string => headOf({ 'Content-Length': String(text.length) }) + text;
      const answers = await exchange(
        [request('{}') + request('[]') + headOf({}, 'GET /v1/data/tags HTTP/1.1') + request('null')],
        { answers: 4 },
      );
      assert.deepEqual(
        answers.map(({ status }) => status),
        [400, 400, 200, 400],
      );
      assertRawRefusal(answers[0]!, 400, /no "records"/);
      assertRawRefusal(answers[1]!, 400, /not an array/);
      assertRawRefusal(answers[3]!, 400, /not null/);
    });

    test('a CONNECT behind another request is refused after the response to that request', async () => {
      const connect = 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n';
      const answers = await exchange([headOf({}, 'GET /v1/changes?wait=1 HTTP/1.1') + connect], {
        answers: 2,
      });
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 405],
      );
    });
  });

  test('after all of this the same process responds, has stored nothing and logged no failure', async () => {
    assert.equal(headgate.process.pid, pid);
    assert.equal(headgate.process.exitCode, null);
    assert.ok(statuses.length > (isTriedInFull(store) ? 100 : 5));
    assert.deepEqual(
      statuses.filter((status) => status >= 500),
      [],
    );
    assert.doesNotMatch(headgate.output(), /failed unexpectedly|thread/);
    for (const type of recordTypeNames) {
      assert.deepEqual((await hostile.list(type, '?include_deleted=true')).body.records, [], type);
    }
  });
}

describe('a server under hostile input', () => forEachStore(hostileSuite));

describe('more bodies in flight than allowed', () => {
  test('one key leaves room for the others', async () => {
    const { folder, remove } = await newDatabaseFolder();
    const headgate = await startHeadgate(`${folder}/headgate.db`, {
      HEADGATE_MAX_BODY: '512KiB',
      HEADGATE_MAX_IN_FLIGHT: '1MiB',
    });
    try {
      const [greedy, modest] = [await headgate.newKey(), await headgate.newKey()];
      const text = uploadOf(shop());
      const body = text + ' '.repeat(300 * 1024 - text.length);
      const request = { path: '/v1/data/shops', headers: bearer(greedy.key), body };
      const connections = await Promise.all([connectRaw(headgate.url), connectRaw(headgate.url)]);
      const finish: (() => void)[] = [];
      for (const connection of connections) finish.push(await connection.sendAllButTheLastByte(request));
      const answers = connections.map((connection) => connection.answer());
      assert.equal((await Promise.race(answers)).status, 503);
      const modestly = await apiOf(headgate.url, modest.key).request('/v1/data/shops', { body });
      assert.equal(modestly.status, 200);
      for (const send of finish) send();
      assert.deepEqual((await Promise.all(answers)).map(({ status }) => status).sort(), [200, 503]);
      for (const connection of connections) connection.destroy();
    } finally {
      await headgate.stop();
      await remove();
    }
  });

  test('the excess gets 503 with Retry-After, and service resumes', async () => {
    const { folder, remove } = await newDatabaseFolder();
    const headgate = await startHeadgate(`${folder}/headgate.db`, {
      HEADGATE_MAX_BODY: '1MiB',
      HEADGATE_MAX_IN_FLIGHT: '1MiB',
    });
    try {
      const { key } = await headgate.newKey();
      const api = apiOf(headgate.url, key);
      const text = uploadOf(shop());
      const body = text + ' '.repeat(400 * 1024 - text.length);
      const request = { path: '/v1/data/shops', headers: bearer(key), body };
      const connections = await Promise.all(Array.from({ length: 5 }, () => connectRaw(headgate.url)));
      const finish: (() => void)[] = [];
      for (const connection of connections) finish.push(await connection.sendAllButTheLastByte(request));
      await waitUntil('the bodies fill what is allowed', async () => {
        const filler = await api.request('/v1/data/shops?dry_run=true', {
          body: `${text}${' '.repeat(300 * 1024)}`,
        });
        return filler.status === 503;
      });
      assert.equal((await api.list('shops')).status, 200);
      for (const send of finish) send();
      const answers = await Promise.all(connections.map((connection) => connection.answer()));
      const excess = answers.filter(({ status }) => status === 503);
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 503, 503, 503]);
      for (const { headers, text: answer } of excess) {
        assert.match(headers.get('retry-after')!, /^[1-9]\d*$/);
        assert.equal((JSON.parse(answer) as RefusalBody).error, 'Service Unavailable');
      }
      for (const connection of connections) connection.destroy();
      await waitUntil('a body of the whole size is taken again', async () => {
        const whole = text + ' '.repeat(1024 * 1024 - text.length);
        return (await api.request('/v1/data/shops', { body: whole })).status === 200;
      });
    } finally {
      await headgate.stop();
      await remove();
    }
  });
});
