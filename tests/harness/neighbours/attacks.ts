// The ways in which an organisation with an ordinary key can try to harm others. Each entry says what the organisation
// has stored before, what each of its connections sends repeatedly, and how it treats the responses.

import { randomBytes, randomUUID } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { brotliCompressSync, constants, createBrotliCompress, gzipSync, zstdCompressSync } from 'node:zlib';
import { type RecordTypeName, recordTypes } from '@headgate/catalogue/record-types.ts';
import type { UploadEntry } from '../../../server/store/ledger.ts';
import type { OrganisationNumber, Row } from '../../../server/store/rows.ts';
import type { Store } from '../../../server/store/store.ts';
import { interactionRow, recordRow } from '../../../server/store/test-rows.ts';
import { brotliBomb, gzipOfEmptyBlocks } from '../bombs.ts';
import { leastRecord } from '../records.ts';
import { RenewedUpload } from '../renewed-upload.ts';

/**
 * - `reads`: waits for each response before it sends the next request;
 * - `never reads`: keeps sending requests without reading any response;
 * - `leaves`: sends a whole request and closes the connection before the response;
 * - `stalls`: sends a body except its last byte, and then nothing;
 * - `vanishes`: waits until the server wants the body, and closes the connection in the middle of it. Without the wait
 *   it would only measure how many connections the kernel queues for the server.
 */
export type Manner = 'reads' | 'never reads' | 'leaves' | 'stalls' | 'vanishes';

/** How many of the rows that make reading costly are stored. */
export interface Scale {
  readonly deletedTags: number;
  readonly interactions: number;
  readonly longOffers: number;
}

/** The server and the organisation of the attack. */
export interface Target {
  readonly port: number;
  /** Several keys of one organisation, which the connections use in turn. */
  readonly keys: readonly string[];
  /** A shop of the organisation. */
  readonly shopId: string;
}

/** Returns the next request of a connection. */
export type NextRequest = (connection: number) => Buffer;

export interface Attack {
  readonly name: string;
  /** Stores the rows of the organisation before the server starts. */
  readonly furnish?: (store: Store, organisation: OrganisationNumber, scale: Scale) => Promise<void>;
  readonly manner: Manner;
  /** True for one attack of each kind. These run in every run of the tests, all others only in a thorough one. */
  readonly isTypical?: true;
  /** True for uploads of the largest size, which may take more memory. */
  readonly isLargest?: true;
  /** Makes all requests before the attack begins, so that the attacker needs little CPU. */
  readonly requests: (target: Target) => NextRequest | Promise<NextRequest>;
}

const RECORDS = 5000;
const MAX_BODY_BYTES = 32 * 1024 ** 2;
const LONGEST_TEXT_CHARACTERS = 10_000;
/** The most objects and arrays that the server accepts: 40 per record of the largest upload. */
const CONTAINERS = 40 * RECORDS;
const ROWS_PER_WRITE = 5000;

interface RequestParts {
  readonly method?: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

function headOf(
  { port }: Target,
  key: string,
  { method, path, headers }: RequestParts,
  bodyBytes: number | null,
): string {
  const all = {
    Host: `127.0.0.1:${port}`,
    Authorization: `Bearer ${key}`,
    ...(bodyBytes === null
      ? {}
      : { 'Content-Type': 'application/json', 'Content-Length': String(bodyBytes) }),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method ?? (bodyBytes === null ? 'GET' : 'POST')} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

function requestBytes(target: Target, key: string, parts: RequestParts): Buffer {
  if (parts.body === undefined) return Buffer.from(headOf(target, key, parts, null));
  const body = Buffer.from(parts.body);
  return Buffer.concat([Buffer.from(headOf(target, key, parts, body.length)), body]);
}

/** Returns an upload of blanks in so many chunks of 72 bytes. */
function chunked(target: Target, key: string, chunks: number): Buffer {
  const path = '/v1/data/tags';
  const headers = { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' };
  const head = headOf(target, key, { method: 'POST', path, headers }, null);
  return Buffer.from(`${head}${`48\r\n${' '.repeat(72)}\r\n`.repeat(chunks)}0\r\n\r\n`);
}

/** Each connection sends all of them in turn and starts with a different one. */
function inTurn(target: Target, all: readonly RequestParts[]): NextRequest {
  const byKey = target.keys.map((key) => all.map((parts) => requestBytes(target, key, parts)));
  const sent: number[] = [];
  return (connection) => {
    const requests = byKey[connection % byKey.length]!;
    sent[connection] ??= Math.floor((connection * requests.length) / 16);
    return requests[sent[connection]++ % requests.length]!;
  };
}

/** Every upload has ids that were never used before. */
function withNewIds(target: Target, parts: RequestParts, record: (id: string) => object): NextRequest {
  const uploads: RenewedUpload[] = [];
  return (connection) => {
    uploads[connection] ??= new RenewedUpload(
      RECORDS,
      (id) => ({ ...record(id) }),
      (bodyBytes, id) => {
        const headers = Object.entries(parts.headers ?? {}).map(([name, value]) => [
          name,
          value.replace('{id}', id),
        ]);
        const named = { ...parts, headers: Object.fromEntries(headers) };
        return headOf(target, target.keys[connection % target.keys.length]!, named, bodyBytes);
      },
    );
    return uploads[connection].withNewIds();
  };
}

function transaction(shopId: string, id: string): object {
  return leastRecord('transactions', { transaction_id: id, shop_id: shopId });
}

const packing = { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_LGWIN]: 24 };

function packed(path: string, body: string, headers: Readonly<Record<string, string>> = {}): RequestParts {
  const bytes = brotliCompressSync(body, { params: packing });
  return { path, headers: { 'Content-Encoding': 'br', ...headers }, body: bytes };
}

/** Returns an upload of one record, repeated. */
function uploadOf(record: string): string {
  return `{"records":[${new Array<string>(RECORDS).fill(record).join()}]}`;
}

/**
 * Returns bodies with one name of 30 million characters, different in each. Only the start of each body is compressed
 * separately. The rest is compressed once: it repeats the characters before it, whatever these are.
 */
async function longNames(path: string, before: string, after: string): Promise<RequestParts[]> {
  const packStart = async (start: string, rest: string): Promise<[Buffer, Buffer]> => {
    const packer = createBrotliCompress({ params: packing });
    const all = buffer(packer);
    let startBytes = 0;
    packer.on('data', (chunk: Buffer) => (startBytes += chunk.length));
    packer.write(start);
    await new Promise<void>((resolve) => packer.flush(constants.BROTLI_OPERATION_FLUSH, resolve));
    const length = startBytes;
    packer.end(rest);
    const bytes = await all;
    return [bytes.subarray(0, length), bytes.subarray(length)];
  };
  const startWith = (name: string): string => before + name;
  const [, rest] = await packStart(startWith('00000000'), 'a'.repeat(30_000_000) + after);
  const names = Array.from({ length: 300 }, (_, at) => at.toString(16).padStart(8, '0'));
  return Promise.all(
    names.map(async (name) => {
      const [start] = await packStart(startWith(name), '');
      return { path, headers: { 'Content-Encoding': 'br' }, body: Buffer.concat([start, rest]) };
    }),
  );
}

/** Returns a compressed body of one empty part, repeated. */
function repeatedPart(encoding: string, part: Buffer, count: number): RequestParts {
  return {
    path: '/v1/data/tags',
    headers: { 'Content-Encoding': encoding },
    body: Buffer.alloc(part.length * count, part),
  };
}

function rejectedRecords(): RequestParts {
  return packed('/v1/data/tags', uploadOf(`{"tag_id":"${'x'.repeat(1900)}"}`));
}

/** Returns a transaction with every field wrong, and unknown fields as long as error messages quote them. */
function recordOfMostErrors(): string {
  const long = 'x'.repeat(100);
  const fields = Object.keys(recordTypes.transactions.fields).map((name) => [name, long]);
  const unknown = Array.from({ length: 5 }, (_, at) => [`${at}${long}`, 1]);
  return JSON.stringify(Object.fromEntries([...fields, ...unknown]));
}

/** No two records share a field name, so that the engine needs a new object layout for each. */
function unknownFields(perRecord: number): RequestParts {
  const records = Array.from({ length: RECORDS }, (_, record) => {
    const unknown = Array.from({ length: perRecord }, (_, field) => [`${record}_${field}`, 1]);
    return { ...leastRecord('tags'), ...Object.fromEntries(unknown) };
  });
  return packed('/v1/data/tags', JSON.stringify({ records }), { Prefer: 'handling=lenient' });
}

async function writeRows(
  store: Store,
  organisation: OrganisationNumber,
  type: RecordTypeName,
  count: number,
  row: (at: number) => Row,
  perWrite = ROWS_PER_WRITE,
): Promise<void> {
  for (let done = 0; done < count; done += perWrite) {
    const rows = Array.from({ length: Math.min(perWrite, count - done) }, (_, at) => row(done + at));
    const entry: UploadEntry = {
      requestId: randomUUID(),
      keyId: 'furnishing',
      receivedAtMs: Date.now(),
      bytes: 0,
      received: rows.length,
      rejected: 0,
      causesJson: null,
    };
    await store.write({ organisation, type, batches: [rows], idempotencyRecord: null, entry });
  }
}

/** JSON writes each character with six bytes. */
const longestText = '\u0001'.repeat(LONGEST_TEXT_CHARACTERS);
const longestTexts = {
  name: longestText,
  type: longestText,
  allowed_branches: longestText,
  allowed_days: longestText,
};

async function furnishLongOffers(
  store: Store,
  organisation: OrganisationNumber,
  { longOffers }: Scale,
): Promise<void> {
  await writeRows(store, organisation, 'offers', longOffers, () => recordRow('offers', longestTexts), 100);
}

const KNOWN_OFFER_ID = '018f6d2e-9c4b-7a31-8f5e-2b6c0d4e7a19';

async function furnishKnownOffer(store: Store, organisation: OrganisationNumber): Promise<void> {
  const offer = () => recordRow('offers', { offer_id: KNOWN_OFFER_ID, ...longestTexts });
  await writeRows(store, organisation, 'offers', 1, offer);
}

async function furnishDeletedTags(
  store: Store,
  organisation: OrganisationNumber,
  { deletedTags }: Scale,
): Promise<void> {
  await writeRows(store, organisation, 'tags', deletedTags, () => recordRow('tags', { is_deleted: true }));
}

async function furnishInteractions(
  store: Store,
  organisation: OrganisationNumber,
  { interactions }: Scale,
): Promise<void> {
  const values = { interaction_type: 'PAGE_VIEW', item_type: 'SHOP', item_id: randomUUID() };
  for (let done = 0; done < interactions; done += ROWS_PER_WRITE) {
    await Promise.all(
      Array.from({ length: Math.min(ROWS_PER_WRITE, interactions - done) }, () =>
        store.writeInteraction({
          organisation,
          row: interactionRow(values),
          idempotencyRecord: null,
          entry: null,
        }),
      ),
    );
  }
}

const MOST_SEGMENTS = 200;
/** A condition has at most 64 nodes: 63 segments, and the node that combines them. */
const USED_SEGMENTS = 63;
const segmentNames = Array.from({ length: MOST_SEGMENTS }, (_, at) => `segment-${at}-`.padEnd(64, 'x'));
const usedSegments = segmentNames.slice(0, USED_SEGMENTS);
const conditionOfMostSegments = { all: usedSegments.map((segment) => ({ segment })) };

/** Stores as many segments as may be. Those that the others use have long lists of values. */
async function furnishSegments(store: Store, organisation: OrganisationNumber): Promise<void> {
  const long = { customer: 'institute_id', in: Array.from({ length: 1000 }, () => randomUUID()) };
  for (const [revision, name] of segmentNames.entries()) {
    const isUsed = revision < USED_SEGMENTS;
    const definition = {
      name,
      note: 'ä'.repeat(1000),
      conditionJson: JSON.stringify(isUsed ? long : conditionOfMostSegments),
      uses: isUsed ? [] : usedSegments,
    };
    if (!(await store.saveSegment(organisation, revision, definition, Date.now()))) {
      throw new Error('the segments have another revision');
    }
  }
}

export const attacks: readonly Attack[] = [
  {
    name: 'unknown names of 30 million characters, tags',
    isTypical: true,
    manner: 'reads',
    requests: async (target) => inTurn(target, await longNames('/v1/data/tags', '{"records":[{"', '":1}]}')),
  },
  {
    name: 'unknown names of 30 million characters, interactions',
    manner: 'reads',
    requests: async (target) => inTurn(target, await longNames('/user-interactions', '{"', '":1}')),
  },
  {
    name: '5000 records with wrong field names',
    manner: 'reads',
    requests(target) {
      const records = Array.from({ length: RECORDS }, () => ({ tagid: randomUUID(), nam: 'x' }));
      return inTurn(target, [{ path: '/v1/data/tags', body: JSON.stringify({ records }) }]);
    },
  },
  {
    name: '5000 empty records',
    manner: 'reads',
    requests: (target) => inTurn(target, [{ path: '/v1/data/tags', body: uploadOf('{}') }]),
  },
  {
    name: '5000 rejected records of 10 MB in 52 bytes',
    isTypical: true,
    manner: 'reads',
    requests: (target) => inTurn(target, [rejectedRecords()]),
  },
  {
    name: '5000 rejected records of 10 MB in 52 bytes, not waited for',
    manner: 'leaves',
    requests: (target) => inTurn(target, [rejectedRecords()]),
  },
  {
    name: '5000 records with the most errors',
    manner: 'reads',
    requests: (target) => inTurn(target, [packed('/v1/data/transactions', uploadOf(recordOfMostErrors()))]),
  },
  {
    name: 'answers with the most errors, never read',
    isTypical: true,
    manner: 'never reads',
    requests: (target) => inTurn(target, [packed('/v1/data/transactions', uploadOf(recordOfMostErrors()))]),
  },
  {
    name: 'pages of 1000 offers with the longest texts',
    isTypical: true,
    furnish: furnishLongOffers,
    manner: 'reads',
    requests: (target) => inTurn(target, [{ path: '/v1/data/offers?limit=1000' }]),
  },
  {
    name: 'pages of 1000 offers with the longest texts, never read',
    furnish: furnishLongOffers,
    manner: 'never reads',
    requests: (target) => inTurn(target, [{ path: '/v1/data/offers?limit=1000' }]),
  },
  {
    name: 'pages of changes with the longest texts',
    furnish: furnishLongOffers,
    manner: 'reads',
    requests: (target) => inTurn(target, [{ path: '/v1/changes?after=0&limit=10000' }]),
  },
  {
    name: 'lists of tags that are all deleted',
    isTypical: true,
    furnish: furnishDeletedTags,
    manner: 'reads',
    requests: (target) => inTurn(target, [{ path: '/v1/data/tags?limit=1' }]),
  },
  {
    name: 'lists of interactions without a match',
    furnish: furnishInteractions,
    manner: 'reads',
    requests: (target) =>
      inTurn(
        target,
        ['interaction_type=SHARE', 'source=SERVICE', 'item_type=KEYWORD'].map((filter) => ({
          path: `/user-interactions?${filter}`,
        })),
      ),
  },
  {
    name: 'bodies of 32 MiB that stall',
    isTypical: true,
    manner: 'stalls',
    requests: (target) =>
      inTurn(target, [{ path: '/v1/data/tags', body: Buffer.alloc(MAX_BODY_BYTES, ' ') }]),
  },
  {
    name: 'requests with an Idempotency-Key that vanish',
    isTypical: true,
    manner: 'vanishes',
    requests(target) {
      const body = uploadOf(JSON.stringify(leastRecord('tags')));
      const keys = Array.from({ length: 20 }, () => ['the-same', randomUUID()]).flat();
      const requests = keys.map((key) => ({
        path: '/v1/data/tags',
        headers: { 'Idempotency-Key': key, Expect: '100-continue' },
        body,
      }));
      return inTurn(target, requests);
    },
  },
  {
    name: '16 million zeros',
    manner: 'reads',
    requests(target) {
      const zeros = `0${',0'.repeat(16_000_000)}`;
      return inTurn(target, [packed('/v1/data/tags', `{"records":[{"name":[${zeros}]}]}`)]);
    },
  },
  {
    name: '3.6 million texts',
    isTypical: true,
    manner: 'reads',
    requests(target) {
      const texts = `"abcdef"${',"abcdef"'.repeat(3_600_000)}`;
      return inTurn(target, [packed('/v1/data/tags', `{"records":[{"name":[${texts}]}]}`)]);
    },
  },
  {
    name: 'a text of 16 million escapes',
    manner: 'reads',
    requests: (target) =>
      inTurn(target, [packed('/v1/data/tags', `{"records":[{"name":"${'\\n'.repeat(15_900_000)}"}]}`)]),
  },
  {
    name: '190,000 keys with escapes',
    manner: 'reads',
    requests(target) {
      const fields = Array.from({ length: 38 }, (_, at) => `"\\u0061${at}":""`);
      return inTurn(target, [packed('/v1/data/transactions', uploadOf(`{${fields.join()}}`))]);
    },
  },
  {
    name: '1.6 million empty gzip members',
    manner: 'reads',
    requests: (target) => inTurn(target, [repeatedPart('gzip', gzipSync(''), 1_600_000)]),
  },
  {
    name: '990 empty zstd frames',
    manner: 'reads',
    requests: (target) => inTurn(target, [repeatedPart('zstd', zstdCompressSync(''), 990)]),
  },
  {
    name: '31 MiB of empty gzip blocks',
    manner: 'reads',
    requests: (target) =>
      inTurn(target, [
        {
          path: '/v1/data/tags',
          headers: { 'Content-Encoding': 'gzip' },
          body: gzipOfEmptyBlocks(31 * 1024 ** 2),
        },
      ]),
  },
  {
    name: 'hundreds of requests at once on a connection',
    manner: 'reads',
    requests(target) {
      const request = requestBytes(target, target.keys[0]!, { path: '/v1/data/tags?limit=1' });
      const requests = Buffer.alloc(request.length * Math.floor(65_536 / request.length), request);
      return () => requests;
    },
  },
  {
    name: 'bodies in chunks of 72 bytes, without a key',
    manner: 'reads',
    requests(target) {
      const request = chunked(target, '', 100_000);
      return () => request;
    },
  },
  {
    name: 'bodies of 127 KiB in chunks of 72 bytes',
    manner: 'reads',
    requests(target) {
      const requests = target.keys.map((key) => chunked(target, key, 1800));
      return (connection) => requests[connection % requests.length]!;
    },
  },
  {
    name: '1350 empty records in 4 KiB, under Idempotency-Keys',
    manner: 'reads',
    requests(target) {
      const body = `{"records":[{}${',{}'.repeat(1350)}]}`;
      return (connection) =>
        requestBytes(target, target.keys[connection % target.keys.length]!, {
          path: '/v1/data/transactions',
          headers: { 'Idempotency-Key': randomUUID() },
          body,
        });
    },
  },
  {
    name: 'arrays as deep as may be',
    manner: 'reads',
    requests(target) {
      const depth = CONTAINERS - 10;
      const nested = '['.repeat(depth) + ']'.repeat(depth);
      return inTurn(target, [packed('/v1/data/tags', `{"records":[{"name":${nested}}]}`)]);
    },
  },
  {
    name: 'a gigabyte of zeros in a kilobyte',
    manner: 'reads',
    requests: async (target) =>
      inTurn(target, [
        {
          path: '/v1/data/tags',
          headers: { 'Content-Encoding': 'br' },
          body: Buffer.from(await brotliBomb()),
        },
      ]),
  },
  {
    name: '5000 records with 70 unknown fields each, lenient',
    manner: 'reads',
    requests: (target) => inTurn(target, [unknownFields(70)]),
  },
  {
    name: '5000 records with 30 unknown fields each, lenient',
    manner: 'reads',
    requests: (target) => inTurn(target, [unknownFields(30)]),
  },
  {
    name: '5000 new transactions',
    isTypical: true,
    manner: 'reads',
    requests: (target) =>
      withNewIds(target, { path: '/v1/data/transactions' }, (id) => transaction(target.shopId, id)),
  },
  {
    name: '5000 new transactions under an Idempotency-Key',
    manner: 'reads',
    requests: (target) =>
      withNewIds(target, { path: '/v1/data/transactions', headers: { 'Idempotency-Key': '{id}' } }, (id) =>
        transaction(target.shopId, id),
      ),
  },
  {
    name: '5000 transactions as a dry run',
    manner: 'reads',
    requests: (target) =>
      withNewIds(target, { path: '/v1/data/transactions?dry_run=true' }, (id) =>
        transaction(target.shopId, id),
      ),
  },
  {
    name: '5000 transactions with unknown references',
    manner: 'reads',
    requests: (target) =>
      withNewIds(target, { path: '/v1/data/transactions' }, (id) => transaction(id, randomUUID())),
  },
  {
    name: '5000 offers with the longest texts that a body holds',
    isTypical: true,
    manner: 'reads',
    isLargest: true,
    requests(target) {
      const ids = Array.from({ length: RECORDS }, () => randomUUID());
      const bodyWith = (letter: string): string => {
        const text = letter.repeat(1600);
        const texts = { name: text, type: text, allowed_branches: text, allowed_days: text };
        const records = ids.map((id) =>
          leastRecord('offers', { offer_id: id, shop_id: target.shopId, ...texts }),
        );
        return JSON.stringify({ records });
      };
      // The two bodies alternate over all connections, so that each upload replaces all records of the one before.
      const [one, other] = ['a', 'b'].map((letter) =>
        requestBytes(target, target.keys[0]!, packed('/v1/data/offers', bodyWith(letter))),
      ) as [Buffer, Buffer];
      let sent = 0;
      return () => (sent++ % 2 === 0 ? one : other);
    },
  },
  {
    name: 'interactions with the longest user ids that a body holds',
    manner: 'reads',
    isLargest: true,
    requests(target) {
      const records = Array.from({ length: 800 }, (_, n) => ({
        ...pageView(target),
        user_id: `${n}`.padEnd(4) + '😀'.repeat(LONGEST_TEXT_CHARACTERS - 4),
      }));
      return inTurn(target, [packed('/v1/data/interactions', JSON.stringify({ records }))]);
    },
  },
  {
    name: 'single offers with the longest texts',
    manner: 'reads',
    requests: (target) =>
      inTurn(
        target,
        Array.from({ length: 32 }, () => {
          const records = [leastRecord('offers', { shop_id: target.shopId, ...longestTexts })];
          return { path: '/v1/data/offers', body: JSON.stringify({ records }) };
        }),
      ),
  },
  {
    name: 'single offers with the longest texts, read',
    manner: 'reads',
    furnish: furnishKnownOffer,
    requests: (target) => inTurn(target, [{ path: `/v1/data/offers/${KNOWN_OFFER_ID}` }]),
  },
  {
    name: 'single interactions',
    manner: 'reads',
    requests: (target) =>
      inTurn(target, [{ path: '/user-interactions', body: JSON.stringify(pageView(target)) }]),
  },
  {
    name: 'one segment of the most that there may be',
    furnish: furnishSegments,
    manner: 'reads',
    requests: (target) => inTurn(target, [{ path: `/v1/segments/${segmentNames.at(-1)!}` }]),
  },
  {
    name: 'previews of the most segments, each with the longest list',
    furnish: furnishSegments,
    manner: 'reads',
    requests: (target) =>
      inTurn(target, [
        { path: '/v1/segments/preview', body: JSON.stringify({ condition: conditionOfMostSegments }) },
      ]),
  },
  {
    name: 'queries that need all processors or much memory',
    isTypical: true,
    manner: 'reads',
    requests: (target) =>
      inTurn(
        target,
        [
          'SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE (a.range * b.range) % 7 = 1',
          'SELECT range FROM range(50000000) ORDER BY hash(range)',
        ].map((sql) => ({ path: '/v1/sql', body: JSON.stringify({ sql }) })),
      ),
  },
  {
    name: 'queries with the most keys and texts that a body may have',
    manner: 'reads',
    requests(target) {
      const objects = Array.from({ length: 990 }, (_, kind) => ({ [`${kind}\n`]: 1 }));
      const texts = Array.from({ length: 30_000 }, (_, text) => `text${text}\n`);
      const params = [...objects, ...texts];
      return inTurn(target, [{ path: '/v1/sql', body: JSON.stringify({ sql: 'SELECT 1', params }) }]);
    },
  },
  {
    name: 'keys that do not exist',
    manner: 'reads',
    requests(target) {
      const keys = Array.from(
        { length: 5000 },
        () => `hg_${randomBytes(6).toString('hex')}_${randomBytes(24).toString('hex')}`,
      );
      const requests = keys.map((key) => ({
        path: '/v1/data/tags',
        headers: { Authorization: `Bearer ${key}` },
      }));
      return inTurn({ ...target, keys: [''] }, requests);
    },
  },
  {
    name: 'small uploads without a key',
    manner: 'reads',
    requests: (target) => inTurn({ ...target, keys: [''] }, [{ path: '/v1/data/tags', body: '{}' }]),
  },
];

function pageView({ shopId }: Target): Readonly<Record<string, string | number>> {
  return {
    interaction_type: 'PAGE_VIEW',
    item_type: 'SHOP',
    item_id: shopId,
    event_timestamp: 1_714_555_800,
  };
}

export function attackNamed(name: string): Attack {
  const attack = attacks.find((one) => one.name === name);
  if (attack === undefined) throw new Error(`there is no attack ${name}`);
  return attack;
}
