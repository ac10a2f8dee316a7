// `headgate load` run again: after a stop, after a correction, while it runs already, and with a damaged journal.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { rm, symlink, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { testDatabases } from '../server/store/test-databases.ts';
import { apiOf } from './harness/api.ts';
import { type Fault, startFaultyProxy } from './harness/faulty-proxy.ts';
import { csvOf, type LoadReport, loadFolder } from './harness/loading.ts';
import { readAllInteractions, readAllRecords } from './harness/read-all.ts';
import { leastRecord } from './harness/records.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { waitUntil } from './harness/waiting.ts';

const running = runningHeadgate(testDatabases[0]!);
const columns = ['shop_id', 'name', 'region'];

function shop(name = 'Shop', region = 'GB'): string[] {
  return [randomUUID(), name, region];
}

/** Makes a folder to load from, for a new organisation and through a proxy. */
async function setUp(t: TestContext) {
  const { key } = await running.headgate.newKey();
  const proxy = await startFaultyProxy(running.headgate.url);
  t.after(() => proxy.close());
  const folder = await loadFolder(t, { HEADGATE_URL: proxy.url, HEADGATE_KEY: key });
  return { folder, proxy, api: apiOf(running.headgate.url, key) };
}

/** Applies the fault to POST requests only. */
function toPosts(fault: Fault | null): (request: { method: string }) => Fault | null {
  return ({ method }) => (method === 'POST' ? fault : null);
}

const noStack = /\n {4}at |TypeError/;

describe('interactions', () => {
  function interactionWith(itemId: string) {
    return { interaction_type: 'SHARE', item_type: 'SHOP', item_id: itemId, event_timestamp: 1_700_000_000 };
  }

  test('that were refused are recorded once their item exists, and only once', async (t) => {
    const { folder, proxy, api } = await setUp(t);
    const record = leastRecord('shops');
    const interaction = interactionWith(record.shop_id as string);
    await folder.write('user-interactions.ndjson', `\n${JSON.stringify(interaction)}\n`);
    const load = () => folder.jsonWithin('load', 'user-interactions.ndjson');
    assert.equal((await load()).total.rejected, 1);
    assert.equal((await load()).total.rejected, 1, 'nothing has changed');

    assert.equal((await api.upload('shops', [record])).status, 200);
    const posts = () => proxy.requests.filter(({ method }) => method === 'POST').length;
    const before = posts();
    proxy.fault = ({ method }) => (method === 'POST' && posts() === before + 1 ? 'cut after' : null);
    const mended = await folder.jsonWithin('load', 'rejected/user-interactions.ndjson');
    assert.deepEqual([mended.total.created, mended.total.rejected], [1, 0]);
    assert.equal((await readAllInteractions(api)).length, 1);

    for (const path of ['user-interactions.ndjson', 'rejected']) {
      const { total } = await folder.jsonWithin('load', path);
      assert.deepEqual([total.unchanged, total.created], [1, 0], path);
    }
    assert.equal((await readAllInteractions(api)).length, 1);
  });

  test('of a killed run get the same ids in the next run', async (t) => {
    const { folder, proxy, api } = await setUp(t);
    const record = leastRecord('shops');
    await folder.write(
      'user-interactions.ndjson',
      `${JSON.stringify(interactionWith(record.shop_id as string))}\n`,
    );
    await folder.runWithin('load', 'user-interactions.ndjson');
    await api.upload('shops', [record]);
    proxy.fault = ({ method }) => (method === 'POST' ? 'cut after' : null);
    const killed = folder.start('load', 'user-interactions.ndjson');
    await waitUntil('it is recorded', async () => (await readAllInteractions(api)).length === 1);
    killed.child.kill('SIGKILL');
    await killed.ended;
    proxy.fault = () => null;
    const { total } = await folder.jsonWithin('load', 'user-interactions.ndjson');
    assert.deepEqual([total.unchanged, total.rejected], [1, 0]);
    assert.equal((await readAllInteractions(api)).length, 1);
  });
});

describe('the ids of interactions', () => {
  test('increase from line to line', async (t) => {
    const { folder, api } = await setUp(t);
    const record = leastRecord('shops');
    assert.equal((await api.upload('shops', [record])).status, 200);
    const line = (at: number): string =>
      `${JSON.stringify({
        interaction_type: 'SHARE',
        item_type: 'SHOP',
        item_id: record.shop_id,
        event_timestamp: 1_700_000_000 + at,
      })}\n`;
    await folder.write('user-interactions.ndjson', Array.from({ length: 30 }, (_, at) => line(at)).join(''));
    assert.equal((await folder.jsonWithin('load', 'user-interactions.ndjson')).total.created, 30);
    const ids = (await readAllInteractions(api))
      .reverse()
      .map(({ interaction_id }) => interaction_id as string);
    assert.deepEqual(ids, ids.toSorted());
    assert.equal(new Set(ids).size, 30);
  });
});

describe('a server that limits requests', () => {
  const limited = runningHeadgate(testDatabases[0]!, {
    HEADGATE_RATE_LIMIT: '2',
    HEADGATE_MAX_RECORDS: '10',
  });

  test('gets every interaction once, and each run counts what it has created', async (t) => {
    const { url, newKey } = limited.headgate;
    const { key } = await newKey();
    const folder = await loadFolder(t, { HEADGATE_URL: url, HEADGATE_KEY: key });
    const record = leastRecord('shops');
    assert.equal((await apiOf(url, key).upload('shops', [record])).status, 200);
    const interactions = Array.from({ length: 25 }, (_, at) => ({
      interaction_type: 'SHARE',
      item_type: 'SHOP',
      item_id: record.shop_id,
      event_timestamp: 1_700_000_000 + at,
    }));
    await folder.write('interactions.json', JSON.stringify(interactions));
    const first = await folder.jsonWithin('load', 'interactions.json');
    assert.deepEqual([first.total.created, first.total.unchanged], [25, 0]);
    const second = await folder.jsonWithin('load', 'interactions.json');
    assert.deepEqual([second.total.created, second.total.unchanged], [0, 25]);
  });
});

describe('a JSON file with more than one array', () => {
  const [one, other] = [leastRecord('shops'), leastRecord('shops')].map((record) => JSON.stringify(record));
  const texts: [text: string, sentence: RegExp][] = [
    [
      `[${one}]\n[${other}]\n`,
      /line 2: it is not valid JSON: Unexpected non-whitespace character after JSON/,
    ],
    [
      `{"records":[${one}]}\n{"records":[${other}]}\n`,
      /line 2: it is not valid JSON: Unexpected non-whitespace character after JSON/,
    ],
  ];
  for (const [text, sentence] of texts) {
    test(`is never treated as loaded: ${text.slice(0, 12)}`, async (t) => {
      const { folder, api } = await setUp(t);
      await folder.write('shops.json', text);
      for (let run = 1; run <= 2; run++) {
        const { exitCode, err } = await folder.runWithin('load', 'shops.json');
        assert.equal(exitCode, 2, err);
        assert.match(err, sentence);
      }
      await folder.write('shops.json', `[${one},\n${other}]`);
      assert.equal((await folder.runWithin('load', 'shops.json')).exitCode, 0);
      assert.equal((await readAllRecords(api, 'shops')).length, 2);
    });
  }
});

test('a stopped load names its rejected records, and the next load names the stopped one', async (t) => {
  const { folder } = await setUp(t);
  const good = csvOf(columns, [shop(), shop('Bad', 'nowhere')]);
  await folder.write('shops.csv', `${good}x\n`);
  const stopped = await folder.runWithin('load', 'shops.csv');
  assert.equal(stopped.exitCode, 2);
  const part = /The records rejected so far are in\n {2}(rejected\/shops\.\w+\.part)\n/.exec(
    stopped.out,
  )![1]!;
  assert.match(await folder.read(part), /"name":"Bad"/);
  const { finished, rejected_files } = await folder.jsonWithin('load', 'shops.csv');
  assert.deepEqual([finished, rejected_files], [false, [part]]);

  await folder.write('tags.csv', csvOf(['tag_id', 'name'], [[randomUUID(), 'x']]));
  const next = await folder.runWithin('load', 'tags.csv');
  assert.equal(next.exitCode, 0);
  assert.match(next.err, /an earlier load has not finished: headgate load shops\.csv resumes it.*--restart/);
  assert.ok(next.err.includes(`the records that it has rejected so far are in ${part}`), next.err);
  const { unfinished_loads } = await folder.jsonWithin<
    LoadReport & { unfinished_loads: { command: string; rejected_files: string[] }[] }
  >('load', 'tags.csv');
  assert.deepEqual(unfinished_loads, [{ command: 'headgate load shops.csv', rejected_files: [part] }]);

  await folder.write('shops.csv', good);
  const ended = await folder.runWithin('load', 'shops.csv');
  assert.equal(ended.exitCode, 1);
  assert.doesNotMatch(ended.err, /has not finished/);
  assert.deepEqual(await folder.names('rejected'), ['shops.ndjson']);
});

test('a load with another key starts over, as the key may be of another organisation', async (t) => {
  const { folder } = await setUp(t);
  await folder.write('shops.csv', `${csvOf(columns, [shop(), shop('Bad', 'nowhere')])}x\n`);
  await folder.runWithin('load', 'shops.csv');
  const { key } = await running.headgate.newKey();
  await folder.write('key', key);
  const second = await folder.runWithin('load', 'shops.csv', '--key-file', 'key');
  assert.match(second.err, /the earlier run used another key.*; the load starts from the beginning/);
  assert.match(second.out, /^shops +2 +1 +0 +0 +1$/m);
  assert.equal((await readAllRecords(apiOf(running.headgate.url, key), 'shops')).length, 1);
  assert.equal((await folder.names('rejected')).length, 2, 'a journal and a file of rejected records');
});

test('a load starts over if its journal is damaged or its rejected records are missing', async (t) => {
  const { folder } = await setUp(t);
  await folder.write('shops.csv', `${csvOf(columns, [shop(), shop('Bad', 'nowhere')])}x\n`);
  const first = await folder.runWithin('load', 'shops.csv');
  const [journal, part] = await folder.names('rejected');
  const [journalPath, partPath] = [`rejected/${journal}`, `rejected/${part}`];
  const notes = await folder.read(journalPath);
  const damages: [damage: () => Promise<void>, reason: RegExp][] = [
    [() => folder.write(journalPath, ''), /journal of an earlier run is damaged/],
    [() => folder.write(journalPath, notes.slice(0, -20)), /journal of an earlier run is damaged/],
    [() => folder.write(journalPath, '{"version":2}'), /journal of an earlier run is damaged/],
    [() => rm(join(folder.path, partPath)), /had rejected no longer exist/],
    [() => truncate(join(folder.path, partPath), 10), /had rejected no longer exist/],
  ];
  for (const [damage, reason] of damages) {
    await damage();
    const { exitCode, out, err } = await folder.runWithin('load', 'shops.csv');
    assert.deepEqual([exitCode, noStack.test(err)], [2, false], err);
    assert.match(err, reason);
    assert.match(err, /; the load starts from the beginning/);
    assert.equal(out, first.out.replace(/^shops .*$/m, /^shops .*$/m.exec(out)![0]));
    const rejected = await folder.read(partPath);
    assert.deepEqual([rejected.split('\n').length, rejected.includes('\0')], [2, false]);
  }
});

test('the same load does not run twice at once, and a killed one does not block it', async (t) => {
  const { folder, proxy, api } = await setUp(t);
  await folder.write('shops.csv', csvOf(columns, [shop()]));
  proxy.fault = toPosts('silence');
  const first = folder.start('load', 'shops.csv');
  await waitUntil('it has sent something', () => proxy.requests.some(({ method }) => method === 'POST'));
  const second = await folder.runWithin('load', 'shops.csv');
  assert.deepEqual([second.exitCode, second.out], [2, '']);
  assert.match(second.err, new RegExp(`the same load is running already, as process ${first.child.pid};`));
  first.child.kill('SIGKILL');
  await first.ended;
  proxy.fault = () => null;
  assert.equal((await folder.runWithin('load', 'shops.csv')).exitCode, 0);
  assert.equal((await readAllRecords(api, 'shops')).length, 1);
  assert.deepEqual(await folder.names('rejected'), [], 'no lock is left');
});

test('the folder of rejected records is recognised by any of its paths', async (t) => {
  const { folder } = await setUp(t);
  await folder.write('shops.csv', csvOf(columns, [shop('Bad', 'nowhere'), shop('Worse', 'nowhere')]));
  await folder.runWithin('load', 'shops.csv');
  await symlink('rejected', join(folder.path, 'link'));
  for (const path of [join(folder.path, 'rejected'), 'link', 'link/shops.ndjson']) {
    const { set_aside, total } = await folder.jsonWithin('load', path);
    assert.deepEqual([set_aside, total.rejected], [[], 2], path);
    assert.deepEqual(await folder.names('rejected'), ['shops.ndjson'], path);
  }
  const { total } = await folder.jsonWithin('load', '.', '--rejected', 'link');
  assert.equal(total.received, 2, 'the rejected records were loaded with the folder around them');
});

test('a load that fails before anything is stored leaves no files behind', async (t) => {
  const { folder, proxy } = await setUp(t);
  await folder.write('shops.csv', csvOf(columns, [shop()]));
  const body = '<html><h1>Access denied</h1></html>';
  for (const fault of [toPosts({ status: 403, body }), () => ({ status: 403, body })]) {
    proxy.fault = fault;
    const { exitCode, err } = await folder.runWithin('load', 'shops.csv');
    assert.equal(exitCode, 2, err);
    assert.match(err, /answered 403: .*not from Headgate.*Access denied/);
    assert.doesNotMatch(err, /ask the operator/);
    assert.deepEqual(await folder.names('rejected'), []);
  }
});

test('unknown codes and malformed responses of a server are reported', async (t) => {
  const { folder, proxy } = await setUp(t);
  await folder.write('shops.csv', csvOf(columns, [shop()]));
  const answer = (index: number): Fault => {
    const error = {
      index,
      id: null,
      field: 'name',
      code: 'too_new',
      message: 'name is too new',
      retryable: false,
    };
    const counts = { received: 1, created: 0, updated: 0, unchanged: 0, rejected: 1 };
    const batch = { batch: 1, status: 400, data: { counts, errors: [error], warnings: [] } };
    return { status: 400, body: JSON.stringify({ request_id: 'r', type: 'shops', batches: [batch] }) };
  };
  proxy.fault = toPosts(answer(0));
  const newer = await folder.runWithin('load', 'shops.csv');
  assert.equal(newer.exitCode, 1, newer.err);
  assert.match(newer.out, /shops: 1 rejected as too_new\.\n {2}shops\.csv:2 +name is too new/);
  proxy.fault = toPosts(answer(7));
  const strange = await folder.runWithin('load', 'shops.csv', '--rejected', 'other');
  assert.notEqual(strange.exitCode, 0);
  assert.doesNotMatch(strange.err, noStack);
});

test('a NUL in a text rejects its record, not the file', async (t) => {
  const { folder } = await setUp(t);
  await folder.write('shops.csv', csvOf(columns, [shop(), shop('a\0b'), shop()]));
  const { exitCode, out, err } = await folder.runWithin('load', 'shops.csv');
  assert.equal(exitCode, 1, err);
  assert.match(out, /^shops +3 +2 +0 +0 +1$/m);
  assert.match(out, /shops\.csv:3 +name .*NUL/);
});

test('a folder that cannot be written is reported in one sentence at once', async (t) => {
  const { folder, api } = await setUp(t);
  await folder.write('shops.csv', csvOf(columns, [shop()]));
  for (const place of ['/proc/rejected', 'shops.csv']) {
    const { exitCode, err } = await folder.runWithin('load', 'shops.csv', '--rejected', place);
    assert.equal(exitCode, 2, err);
    assert.match(err, new RegExp(`^headgate: the load cannot write to ${place}: `));
  }
  assert.equal((await readAllRecords(api, 'shops')).length, 0);
});
