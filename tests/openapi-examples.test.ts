// Sends every example of the API description to a real server, in the order of the document, and provokes every refusal
// that can be provoked. Responses must match the description in status, headers, shape and text.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { isRecordTypeName } from '@headgate/catalogue/record-types.ts';
import { followed, type Parameter, type Response } from '../server/http/openapi/document-shape.ts';
import { testDatabases } from '../server/store/test-databases.ts';
import { apiOf, type RecordsBody } from './harness/api.ts';
import {
  DescribedApi,
  type DescribedOperation,
  exchange,
  type Got,
  hold,
  type Sent,
  withoutGiven,
} from './harness/described-api.ts';
import { forEachStore } from './harness/for-each-store.ts';
import { type RunningHeadgate, runningHeadgate } from './harness/running-headgate.ts';
import { hasProgram } from './harness/waiting.ts';

const run = promisify(execFile);
const root = new URL('..', import.meta.url);
/** More than an organisation may always send, however much is in flight. */
const MOST_BYTES = 256 * 1024;
/** The segment of the examples. */
const SEGMENT = 'regulars';
/** With a rate limit, so that responses have its headers. */
const rated = { HEADGATE_RATE_LIMIT: '1000' };

interface Setting {
  readonly url: string;
  readonly key: string;
  readonly api: DescribedApi;
}

async function newSettingOn({ headgate }: RunningHeadgate, api: DescribedApi): Promise<Setting> {
  const { key } = await headgate.newKey();
  return { url: headgate.url, key, api };
}

function bearer(key: string): Record<string, string> {
  return { Authorization: `Bearer ${key}` };
}

function asBody(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Sends a request as the operation is described, and checks the response against the description. */
async function call(
  { url, key, api }: Setting,
  described: DescribedOperation,
  { query = '', id = '', headers = {}, body }: Partial<Sent> & { query?: string; id?: string } = {},
): Promise<Got> {
  const got = await exchange(url, {
    method: described.method.toUpperCase(),
    path: described.path.replace('{id}', id).replace('{name}', SEGMENT) + query,
    headers: {
      ...bearer(key),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body }),
  });
  api.assertDescribed(described, got);
  return got;
}

function exampleOf(api: DescribedApi, described: DescribedOperation, status: number, name: string): unknown {
  const examples = api.response(described, status)?.content?.['application/json'].examples;
  const found = examples?.[name];
  assert.ok(found, `${described.operation.operationId} has no example ${name} for ${status}`);
  return found.value;
}

/** Returns the body of a request that is accepted. */
function goodBody({ operation }: DescribedOperation): string {
  const [example] = Object.values(operation.requestBody!.content['application/json'].examples!);
  return asBody(example!.value);
}

function readsLedger({ operation }: DescribedOperation): boolean {
  return operation.tags[0] === 'ledger';
}

function isOfSegments({ operation }: DescribedOperation): boolean {
  return operation.tags[0] === 'segments';
}

/** The responses of the others depend on everything that was uploaded before, so they differ from the examples. */
function hasExactExamples(described: DescribedOperation): boolean {
  return !readsLedger(described) && !isOfSegments(described);
}

/** Sends every example of an operation, checks the responses and returns them. */
async function playExamples(setting: Setting, described: DescribedOperation, id: string): Promise<Got[]> {
  const { api } = setting;
  const { operation } = described;
  const answers: Got[] = [];
  const compare = async (status: number, name: string, options: Parameters<typeof call>[2]) => {
    const got = await call(setting, described, options);
    assert.equal(got.status, status, `${operation.operationId}: ${name}: ${JSON.stringify(got.body)}`);
    assert.deepEqual(
      withoutGiven(got.body),
      withoutGiven(exampleOf(api, described, status, name)),
      `${operation.operationId}: ${name}`,
    );
    answers.push(got);
  };
  const good = operation.requestBody?.content['application/json'].examples ?? {};
  for (const [name, { value }] of Object.entries(good)) {
    const status = statusOf(api, described, name);
    await compare(status, name, { body: asBody(value) });
  }
  for (const status of Object.keys(operation.responses).map(Number)) {
    const examples = api.response(described, status)?.content?.['application/json'].examples ?? {};
    for (const [name, example] of Object.entries(examples)) {
      if (name in good) continue;
      if (example['x-request'] !== undefined)
        await compare(status, name, { body: asBody(example['x-request']) });
      else if (status < 300) await compare(status, name, { id });
    }
  }
  return answers;
}

function statusOf(api: DescribedApi, described: DescribedOperation, name: string): number {
  const status = Object.keys(described.operation.responses).find(
    (one) => api.response(described, Number(one))?.content?.['application/json'].examples?.[name],
  );
  assert.ok(status, `the request ${name} of ${described.operation.operationId} has no response`);
  return Number(status);
}

function pathIdOf(api: DescribedApi, described: DescribedOperation): string {
  const parameter = api.parameters(described).find((one) => one.in === 'path' && one.name === 'id');
  return parameter === undefined ? '' : String(parameter.example);
}

/** One operation of each kind: those of one record type represent those of all. */
const kinds = [
  'uploadTransactions',
  'listTransactions',
  'getTransaction',
  'recordInteraction',
  'listInteractions',
  'getInteraction',
  'getLiveness',
  'getReadiness',
  'getOpenApi',
];

const onSqlite = runningHeadgate(testDatabases[0]!, rated);

forEachStore((store) => {
  const running = store === testDatabases[0] ? onSqlite : runningHeadgate(store, rated);
  let api: DescribedApi;

  before(async () => {
    api = await DescribedApi.of(running.headgate.url);
  });

  const newSetting = (): Promise<Setting> => newSettingOn(running, api);

  describe('the examples of the API description', () => {
    it('work in the order of the document', async () => {
      const setting = await newSetting();
      let interactionId = '';
      let played = 0;
      for (const described of api.operations.filter(hasExactExamples)) {
        const id = described.path.startsWith('/user-interactions') ? interactionId : pathIdOf(api, described);
        const answers = await playExamples(setting, described, id);
        played += answers.length;
        if (described.operation.operationId === 'recordInteraction') {
          interactionId = (answers[0]!.body as { interaction_id: string }).interaction_id;
        }
      }
      assert.ok(played >= 14 * 6 + 7, `only ${played} examples were played`);
    });

    it('of the ledger match their descriptions', async () => {
      const setting = await newSetting();
      const sent = await call(setting, api.operation('uploadShops'), {
        body: goodBody(api.operation('uploadShops')),
      });
      const { request_id: id } = sent.body as { request_id: string };
      for (const described of api.operations.filter(readsLedger)) {
        const { status } = await call(setting, described, { id });
        assert.equal(status, 200, described.operation.operationId);
        for (const { name, example } of queryOf(described)) {
          // The ledger has one entry, and the example is a position after many.
          const value = name === 'after' ? '0' : String(example);
          const got = await call(setting, described, { query: `?${name}=${encodeURIComponent(value)}` });
          assert.equal(got.status, 200, `${described.path}?${name}`);
        }
      }
      const gone = await call(setting, api.operation('listChanges'), { query: '?after=41' });
      assert.equal(gone.status, 410);
    });

    it('of segments match their descriptions', async () => {
      const setting = await newSetting();
      for (const id of ['uploadInstitutes', 'uploadCourses', 'uploadCustomers']) {
        await call(setting, api.operation(id), { body: goodBody(api.operation(id)) });
      }
      const inOrder = ['previewSegment', 'saveSegment', 'refreshSegment', 'listSegments', 'getSegment'];
      const others = ['listMembers', 'explainMember', 'listMemberChanges', 'deleteSegment'];
      assert.deepEqual(
        new Set([...inOrder, ...others]),
        new Set(api.operations.filter(isOfSegments).map(({ operation }) => operation.operationId)),
      );
      for (const operationId of [...inOrder, ...others]) {
        const described = api.operation(operationId);
        const body = described.operation.requestBody === undefined ? {} : { body: goodBody(described) };
        for (const { name, example } of queryOf(described)) {
          // The numbers of the changes begin after the example's.
          if (name === 'after') continue;
          const got = await call(setting, described, {
            query: `?${name}=${encodeURIComponent(String(example))}`,
          });
          assert.equal(got.status, 200, `${described.path}?${name}`);
        }
        const id = pathIdOf(api, described);
        const { status } = await call(setting, described, { ...body, id });
        assert.equal(status, operationId === 'deleteSegment' ? 204 : 200, operationId);
      }
      const gone = await call(setting, api.operation('getSegment'));
      assert.equal(gone.status, 404);
    });

    it('of query parameters work', async () => {
      const setting = await newSetting();
      const holdout = { condition: { sample: { percent: 10, salt: 'a' } } };
      await apiOf(setting.url, setting.key).request('/v1/segments/holdout', { method: 'PUT', body: holdout });
      for (const described of api.operations.filter(hasExactExamples)) {
        const body = described.method === 'post' ? { body: goodBody(described) } : {};
        const { status } = await call(setting, described, { ...body, id: pathIdOf(api, described) });
        assert.ok(status < 300 || described.operation.operationId === 'getInteraction');
        for (const { name, example } of queryOf(described)) {
          const query = `?${name}=${encodeURIComponent(String(example))}`;
          const got = await call(setting, described, { ...body, query });
          // It is for CSV, and these requests accept JSON.
          const isRefused = name === 'spreadsheet_safe';
          assert.equal(got.status, isRefused ? 400 : 200, `${described.path}${query}`);
          if (!isRefused) assertQueryWorked(name, got);
        }
      }
    });

    const queryOf = (described: DescribedOperation): readonly Parameter[] =>
      api.parameters(described).filter((one) => one.in === 'query');

    const assertQueryWorked = (name: string, { body }: Got): void => {
      const { dry_run, records, interactions, groups } = body as Record<string, unknown>;
      if (name === 'dry_run') assert.equal(dry_run, true);
      else if (groups !== undefined) assert.ok(Array.isArray(groups));
      else if (name !== 'cursor') assert.equal(((records ?? interactions) as unknown[]).length, 1, name);
    };

    it('of headers work', async () => {
      const setting = await newSetting();
      for (const operationId of ['uploadShops', 'uploadCustomers', 'recordInteraction']) {
        const described = api.operation(operationId);
        const body = goodBody(described);
        const headerOf = (name: string): Record<string, string> => {
          const found = api.parameters(described).find((one) => one.name === name);
          return { [name]: String(found!.example) };
        };
        const first = await call(setting, described, { body, headers: headerOf('Idempotency-Key') });
        const second = await call(setting, described, { body, headers: headerOf('Idempotency-Key') });
        assert.equal(first.headers['idempotency-replayed'], undefined);
        assert.equal(second.headers['idempotency-replayed'], 'true');
        assert.deepEqual(second.body, first.body);

        const packed = gzipSync(body);
        const unpacked = await call(setting, described, {
          body: packed,
          headers: headerOf('Content-Encoding'),
        });
        assert.equal(unpacked.status, first.status);

        const strange = body.replace('{', '{"surely_not_known": 1, ');
        const lenient = await call(setting, described, { body: strange, headers: headerOf('Prefer') });
        assert.equal(lenient.status, first.status);
        assert.equal(lenient.headers['preference-applied'], 'handling=lenient');
      }
    });
  });
});

/** They send what the examples say, and those are sent to every store. */
describe('the code samples of the API description', () => {
  let api: DescribedApi;

  before(async () => {
    api = await DescribedApi.of(onSqlite.headgate.url);
  });

  const newSetting = (): Promise<Setting> => newSettingOn(onSqlite, api);

  it('as curl commands do what the document says', async (t) => {
    const { url, key } = await newSetting();
    const environment = { ...process.env, HEADGATE_URL: url, HEADGATE_KEY: key };
    const shell = async (source: string): Promise<unknown> => {
      const { stdout } = await run('bash', ['-c', source], { env: environment });
      return JSON.parse(stdout);
    };
    if (!(await hasProgram('curl'))) return t.skip('there is no curl on this machine');
    let interactionId = '';
    for (const described of api.operations.filter(hasExactExamples)) {
      const { operation } = described;
      const [curl] = operation['x-codeSamples'];
      const isOne = operation.operationId === 'getInteraction';
      const source = isOne ? curl!.source.replace(pathIdOf(api, described), interactionId) : curl!.source;
      const body = (await shell(source)) as Record<string, unknown>;
      if (operation.operationId === 'recordInteraction') interactionId = String(body.interaction_id);
      const status = described.method === 'post' && body.interaction_id !== undefined ? 201 : 200;
      api.assertValid(
        `#/paths/${encodeURIComponent(described.path.replaceAll('/', '~1'))}/${described.method}/responses/${status}/content/application~1json/schema`,
        body,
        source,
      );
      const examples = Object.values(
        api.response(described, status)!.content!['application/json'].examples ?? {},
      );
      if (examples.length > 0) assert.deepEqual(withoutGiven(body), withoutGiven(examples[0]!.value), source);
    }
  });

  it('of the guide work', async (t) => {
    if (!(await hasProgram('curl'))) return t.skip('there is no curl on this machine');
    const { url, key } = await newSetting();
    const blocks = [...api.document.info.description.matchAll(/^```sh .+\n([\s\S]*?)^```$/gm)];
    assert.equal(blocks.length, 2);
    const script = blocks
      .map(([, source]) => source!)
      .join('\n')
      .replace('http://127.0.0.1:8080', url)
      .replace('hg_…', key);
    const { stdout } = await run('bash', ['-c', script]);
    const { batches } = JSON.parse(stdout) as { batches: { data: { counts: { created: number } } }[] };
    assert.equal(batches[0]!.data.counts.created, 1);
  });

  it('in TypeScript compile and work', async () => {
    const { url, key } = await newSetting();
    const folder = await mkdtemp(join(tmpdir(), 'headgate-samples-'));
    try {
      const names = await writeSamples(folder);
      await run(fileURLToPath(new URL('node_modules/.bin/tsc', root)), ['--noEmit', '-p', folder]);
      await writeFile(join(folder, 'run.ts'), names.map((name) => `await import('./${name}');\n`).join(''));
      await run(process.execPath, [join(folder, 'run.ts')], {
        env: { ...process.env, HEADGATE_URL: url, HEADGATE_KEY: key },
      });
    } finally {
      await rm(folder, { recursive: true });
    }
    const reader = apiOf(url, key);
    for (const type of Object.keys(api.document.paths).map((path) => path.replace('/v1/data/', ''))) {
      if (!isRecordTypeName(type)) continue;
      const { body } = await reader.list(type);
      const described = api.operations.find((one) => one.path === `/v1/data/${type}` && one.method === 'get');
      assert.deepEqual(body, exampleOf(api, described!, 200, 'page') as RecordsBody);
    }
    assert.equal((await reader.interactions()).body.interactions.length, 2, 'one recorded, one uploaded');
  });

  const writeSamples = async (folder: string): Promise<string[]> => {
    const client = new URL('client/client.ts', root).href;
    const names: string[] = [];
    // What the others use is deleted last.
    const isDeletion = ({ method }: DescribedOperation): number => Number(method === 'delete');
    const operations = api.operations.toSorted((a, b) => isDeletion(a) - isDeletion(b));
    for (const { operation } of operations) {
      const sample = operation['x-codeSamples'].find(({ lang }) => lang === 'TypeScript');
      if (sample === undefined) continue;
      const name = `${operation.operationId}.ts`;
      names.push(name);
      await writeFile(join(folder, name), sample.source.replace("'@headgate/client'", `'${client}'`));
    }
    assert.ok(names.length >= 14 * 3 + 3);
    await writeFile(join(folder, 'package.json'), '{"type": "module"}');
    const typeRoots = [fileURLToPath(new URL('node_modules/@types', root))];
    const paths = { [client]: [fileURLToPath(client)] };
    await writeFile(
      join(folder, 'tsconfig.json'),
      JSON.stringify({
        extends: fileURLToPath(new URL('tsconfig.json', root)),
        compilerOptions: { typeRoots, paths },
        include: ['*.ts'],
      }),
    );
    return names;
  };
});

/** After this time a request has been read and waits for the store, whose responses are held back. */
const REACHES_THE_STORE_MS = 500;

describe('the refusals of the API description', () => {
  const [store] = testDatabases;
  const running = onSqlite;
  const small = runningHeadgate(store!, {
    HEADGATE_MAX_BODY: String(MOST_BYTES),
    HEADGATE_MAX_IN_FLIGHT: String(MOST_BYTES),
  });
  const slow = runningHeadgate(store!, { HEADGATE_RATE_LIMIT: '1' });
  let url: string;
  let api: DescribedApi;
  let key: string;
  /** A key that may neither read nor write the data of the operations below. */
  let powerlessKey: string;

  before(async () => {
    url = running.headgate.url;
    api = await DescribedApi.of(url);
    [{ key }, { key: powerlessKey }] = await Promise.all([
      running.headgate.newKey(),
      running.headgate.newKey(undefined, ['data:write:tags', 'data:read:tags']),
    ]);
  });

  /** Provokes a refusal and compares it with the example of that status. */
  const provoke = async (
    judge: DescribedApi,
    described: DescribedOperation,
    status: number,
    name: string,
    provoked: Promise<Got>,
  ): Promise<void> => {
    const got = await provoked;
    const what = `${described.operation.operationId}: ${JSON.stringify(got.body)}`;
    assert.equal(got.status, status, what);
    judge.assertDescribed(described, got);
    assert.deepEqual(withoutGiven(got.body), withoutGiven(exampleOf(judge, described, status, name)), what);
  };

  const sentTo = (
    described: DescribedOperation,
    withKey: string | null,
    further: Partial<Sent> = {},
  ): Sent => ({
    method: described.method.toUpperCase(),
    path: described.path.replace('{id}', pathIdOf(api, described)),
    ...(described.method === 'post' ? { body: goodBody(described) } : {}),
    ...further,
    headers: {
      ...(withKey === null ? {} : bearer(withKey)),
      ...(described.method === 'post' ? { 'Content-Type': 'application/json' } : {}),
      ...further.headers,
    },
  });

  for (const operationId of kinds) {
    it(`are returned by ${operationId} as described`, async () => {
      const described = api.operation(operationId);
      const { path } = sentTo(described, key);
      const send = (further: Partial<Sent> = {}): Promise<Got> =>
        exchange(url, sentTo(described, key, further));
      const refuses = (status: number, name: string, provoked: Promise<Got>): Promise<void> =>
        provoke(api, described, status, name, provoked);

      await refuses(417, 'expectation_failed', send({ headers: { Expect: 'the impossible' } }));
      const long = { 'X-Long': 'x'.repeat(20_000) };
      await refuses(431, 'header_fields_too_large', send({ headers: long }));
      const { status, headers, body } = await exchange(url, { method: 'DELETE', path, headers: bearer(key) });
      assert.equal(status, 405);
      assert.match(headers.allow!, new RegExp(described.method, 'i'));
      api.assertValid('#/components/schemas/Refusal', body, 'DELETE');
      if (described.operation.security.length === 0) return;

      await refuses(401, 'unauthorized', exchange(url, sentTo(described, null)));
      await refuses(401, 'unauthorized', exchange(url, sentTo(described, 'hg_wrong_key')));
      await refuses(403, 'forbidden', exchange(url, sentTo(described, powerlessKey)));
      if (described.path.endsWith('{id}')) {
        await refuses(404, 'not_found', send());
        await refuses(400, 'unknown_parameter', send({ path: `${path}?limit=5` }));
      } else if (described.method === 'get') {
        await refuses(400, 'bad_limit', send({ path: `${path}?limit=0` }));
      }
      if (described.method === 'get') return;

      await refuses(415, 'unsupported_media_type', send({ headers: { 'Content-Type': 'text/plain' } }));
      const sameKey = { headers: { 'Idempotency-Key': 'of-a-request-that-runs' } };
      const release = await store!.holdAnswers(running.headgate.database);
      const first = send(sameKey);
      try {
        await sleep(REACHES_THE_STORE_MS);
        await refuses(409, 'conflict', send(sameKey));
      } finally {
        await release();
        await first;
      }
      const taken = { 'Idempotency-Key': 'of-another-body' };
      const refusedWhole = { headers: taken, body: asBody(unacceptable(described)) };
      api.assertDescribed(described, await send(refusedWhole));
      await refuses(422, 'unprocessable_content', send({ headers: taken }));
    });
  }

  /** Returns a body whose content is refused, so that its response is stored under its idempotency key. */
  const unacceptable = ({ operation }: DescribedOperation): unknown =>
    followed<Response>(api.document, operation.responses['400']!).content!['application/json'].examples!
      .refused!['x-request'];

  it('name the scopes, any of which is enough', async () => {
    const scopes = new Set(kinds.flatMap((id) => scopesOf(api.operation(id))));
    const { org_id } = await running.headgate.newKey();
    for (const scope of scopes) {
      const { key: narrow } = await running.headgate.anotherKey(org_id, [scope]);
      for (const described of kinds.map((id) => api.operation(id))) {
        const got = await exchange(url, sentTo(described, narrow));
        api.assertDescribed(described, got);
        const needed = scopesOf(described);
        assert.equal(
          got.status === 403,
          needed.length > 0 && !needed.includes(scope),
          `${scope}: ${described.path}`,
        );
      }
    }
  });

  it('include 413 and 503 for bodies that are too large', async () => {
    const { url: smallUrl } = small.headgate;
    const judge = await DescribedApi.of(smallUrl);
    const { key: smallKey } = await small.headgate.newKey();
    for (const described of [judge.operation('uploadTransactions'), judge.operation('recordInteraction')]) {
      const large = sentTo(described, smallKey, { body: 'x'.repeat(MOST_BYTES + 1) });
      const most = sentTo(described, smallKey, { body: 'x'.repeat(MOST_BYTES - 100) });
      await provoke(judge, described, 413, 'content_too_large', exchange(smallUrl, large));
      const held = await hold(smallUrl, most);
      try {
        await provoke(judge, described, 503, 'service_unavailable', exchange(smallUrl, most));
      } finally {
        await held.giveUp();
      }
    }
  });

  it('include 429 if there is a rate limit', async () => {
    const { url: slowUrl } = slow.headgate;
    const judge = await DescribedApi.of(slowUrl);
    const { key: slowKey } = await slow.headgate.newKey();
    for (const described of kinds.map((id) => judge.operation(id))) {
      const answers = await Promise.all(
        Array.from({ length: 4 }, () => exchange(slowUrl, sentTo(described, slowKey))),
      );
      const over = answers.filter(({ status }) => status === 429);
      assert.equal(over.length > 0, described.operation.security.length > 0, described.path);
      for (const got of answers) judge.assertDescribed(described, got);
      for (const got of over) {
        await provoke(judge, described, 429, 'too_many_requests', Promise.resolve(got));
      }
    }
  });
});

function scopesOf({ operation }: DescribedOperation): readonly string[] {
  return operation.security.flatMap(({ apiKey }) => apiKey);
}
