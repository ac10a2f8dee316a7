// `headgate segments …` on a real server.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { HeadgateClient, type Segment } from '@headgate/client/client.ts';
import { testDatabases } from '../server/store/test-databases.ts';
import { startFaultyProxy } from './harness/faulty-proxy.ts';
import { commandLine } from './harness/headgate.ts';
import { type LoadFolder, loadFolder, type Ran, runWithin } from './harness/loading.ts';
import { runningHeadgate } from './harness/running-headgate.ts';

const german = { customer: 'region', is: 'DE' };

describe('headgate segments', () => {
  const running = runningHeadgate(testDatabases[0]!);

  async function newSetting(
    t: TestContext,
    scopes?: readonly string[],
  ): Promise<{ folder: LoadFolder; client: HeadgateClient; segments(...args: string[]): Promise<Ran> }> {
    const { key } = await running.headgate.newKey(undefined, scopes);
    const { url } = running.headgate;
    const folder = await loadFolder(t, { HEADGATE_URL: url, HEADGATE_KEY: key });
    const client = new HeadgateClient({ url, apiKey: key });
    return { folder, client, segments: (...args) => runWithin(folder.environment, 'segments', ...args) };
  }

  async function uploadCustomers(client: HeadgateClient, ...regions: string[]): Promise<string[]> {
    const customers = regions.map((region) => ({ customer_id: randomUUID(), user_id: randomUUID(), region }));
    await client.upload('customers', customers);
    return customers.map(({ customer_id }) => customer_id);
  }

  async function done(ran: Promise<Ran>): Promise<string> {
    const { exitCode, out, err } = await ran;
    assert.deepEqual([exitCode, err], [0, '']);
    return out;
  }

  test('a condition is tried, saved, listed, shown, evaluated again and deleted', async (t) => {
    const { client, folder, segments } = await newSetting(t);
    const [de] = await uploadCustomers(client, 'DE', 'AT', 'GB', 'GB');
    const condition = {
      all: [{ customer: 'region', in: ['DE', 'AT'] }, { not: { customer: 'region', is: 'AT' } }],
    };
    await folder.write('near.json', JSON.stringify(condition, null, 2));

    const [tree, facts] = (await done(segments('preview', join(folder.path, 'near.json')))).split('\n\n') as [
      string,
      string,
    ];
    assert.deepEqual(tree.split('\n'), [
      'CUSTOMERS                CONDITION',
      '        1  ████░░░░░░░░  all of',
      '        2  ████████░░░░    customer region in DE, AT',
      '        3  ████████████    not',
      '        1  ████░░░░░░░░      customer region is AT',
    ]);
    assert.match(facts, /^1 customer, in [\d,]+ ms, as of entry 1$/);
    const { count, sample } = JSON.parse(
      await done(segments('preview', join(folder.path, 'near.json'), '--json')),
    );
    assert.deepEqual([count, sample], [1, [de]]);

    assert.equal(await done(segments('list')), 'There are no segments.\n');
    assert.equal(
      await done(segments('save', 'near', join(folder.path, 'near.json'), '--note', 'Near \u001b[31mus')),
      'saved: near has 1 member; 1 entered, 0 left\n',
    );
    await uploadCustomers(client, 'DE');
    assert.equal(
      await done(segments('refresh', 'near')),
      'evaluated: near has 2 members; 1 entered, 0 left\n',
    );
    const [header, line] = (await done(segments('list'))).split('\n');
    assert.equal(header!.replace(/ +/g, ' '), 'NAME MEMBERS EVALUATED TOOK ENTERED LEFT FAILED');
    assert.match(line!, /^near +2 +\d+ s ago +[\d,]+ ms +1 +0$/);
    assert.equal(JSON.parse(await done(segments('list', '--json')))[0].count, 2);

    const shown = await done(segments('show', 'near'));
    assert.match(shown, /^Name +near\nNote +Near \\u001b\[31mus\nMembers +2\nCreated +\d{4}-/);
    assert.match(
      shown,
      /\nEvaluated +\S+ \(\d+ s ago\), in [\d,]+ ms\n +1 entered, 0 left\n\nall of\n {2}customer/,
    );
    const json = await done(segments('show', 'near', '--json'));
    const segment = JSON.parse(json) as Segment;
    assert.deepEqual([segment.condition, segment.note], [condition, 'Near \u001b[31mus']);

    const [program, ...args] = commandLine(['segments', 'save', 'copy', '-', '--json']);
    const started = promisify(execFile)(program!, args, { env: { ...process.env, ...folder.environment } });
    started.child.stdin!.end(json);
    const copy = JSON.parse((await started).stdout) as Segment;
    assert.deepEqual([copy.name, copy.condition, copy.note], ['copy', condition, segment.note]);

    assert.equal(
      await done(segments('delete', 'copy')),
      'deleted the segment copy, its members and their changes\n',
    );
    assert.deepEqual(JSON.parse(await done(segments('delete', 'near', '--json'))), {
      name: 'near',
      deleted: true,
    });
    assert.deepEqual(await client.segments(), []);
  });

  test('a customer is explained', async (t) => {
    const { client, segments } = await newSetting(t);
    const [de, gb] = (await uploadCustomers(client, 'DE', 'GB')) as [string, string];
    await client.saveSegment('german', {
      condition: {
        any: [{ customer: 'region', is: 'DE' }, { did: 'transactions' }, { customer: 'age', above: 3 }],
      },
    });
    const [membership, ...tree] = (await done(segments('why', 'german', de))).trimEnd().split('\n');
    assert.match(membership!, /^The customer has been a member of german since \S+Z\.$/);
    assert.deepEqual(tree, [
      '',
      'HOLDS  SAW  CONDITION',
      'yes         any of',
      'yes    DE     customer region is DE',
      'no     0      did transactions',
      'no     –      customer age above 3',
    ]);
    const whyNot = await done(segments('why', 'german', gb));
    assert.match(whyNot, /^The customer is not a member of german\.\n/);
    assert.equal(JSON.parse(await done(segments('why', 'german', gb, '--json'))).member, false);

    await client.upload('customers', [{ customer_id: gb, user_id: randomUUID(), region: 'DE' }]);
    assert.match(
      await done(segments('why', 'german', gb)),
      /^The condition of german holds .* next evaluation\.\n/,
    );
    const { exitCode, err } = await segments('why', 'german', randomUUID());
    assert.equal(exitCode, 1);
    assert.match(err, /^headgate: there is no customer "[-0-9a-f]{36}", or the customer is deleted\n$/);
  });

  test('all members are printed, as a table, NDJSON and CSV', async (t) => {
    const { client, folder } = await newSetting(t);
    const ids = (await uploadCustomers(client, ...Array<string>(1003).fill('DE'))).toSorted();
    await client.saveSegment('german', { condition: { customer: 'region', is: 'DE' } });
    const [header, ...rows] = (await done(folder.run('segments', 'members', 'german'))).trimEnd().split('\n');
    assert.match(header!, /^CUSTOMER {30}SINCE$/);
    assert.deepEqual(
      rows.map((row) => row.split('  ')[0]),
      ids,
    );
    const lines = (await done(folder.run('segments', 'members', 'german', '--format', 'ndjson')))
      .trimEnd()
      .split('\n');
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).customer_id),
      ids,
    );
    const csv = await done(folder.run('segments', 'members', 'german', '--format', 'csv'));
    assert.match(csv, /^customer_id,since\n[-0-9a-f]{36},\S+Z\n/);
    await client.saveSegment('nobody', { condition: { not: { customer: 'region', exists: true } } });
    assert.equal(
      await done(folder.run('segments', 'members', 'nobody', '--format', 'csv')),
      'customer_id,since\n',
    );
    assert.equal((await folder.run('segments', 'members', 'german', '--format', 'xml')).exitCode, 2);
  });

  test('a condition that is not valid is shown with its place in the file', async (t) => {
    const { folder, segments } = await newSetting(t);
    await folder.write('bare.json', '{\n  "all": [\n    {"customer": "regoin", "is": "DE"}\n  ]\n}\n');
    await folder.write('whole.json', `{"note": null,\n "condition": {"customer": "region", "is": 7}}`);
    for (const [args, sentence, place] of [
      [
        ['preview', 'bare.json'],
        /condition\.all\[0\]\.customer: .*did you mean "region"\?/,
        ['"customer"', 3],
      ],
      [['save', 'a', 'bare.json'], /condition\.all\[0\]\.customer: /, ['"customer"', 3]],
      [['save', 'a', 'whole.json'], /condition\.is: /, ['"is"', 2]],
    ] as const) {
      const { exitCode, out, err } = await segments(...args.slice(0, -1), join(folder.path, args.at(-1)!));
      assert.deepEqual([exitCode, out], [1, '']);
      const [message, line, caret] = err.split('\n') as [string, string, string];
      assert.match(message, sentence);
      assert.ok(line.startsWith(`line ${place[1]}: `), line);
      assert.ok(line.slice(caret.indexOf('^')).startsWith(place[0]), err);
    }
    await folder.write('broken.json', '{"all": [}');
    await folder.write('number.json', '{"condition": {"segment": "a"}, "note": 7}');
    for (const [file, sentence] of [
      ['broken.json', /broken\.json" is not JSON: /],
      ['number.json', /the note in the file ".*number\.json" must be a text/],
      ['missing.json', /missing\.json" cannot be read/],
    ] as const) {
      const { exitCode, err } = await segments('save', 'a', join(folder.path, file));
      assert.equal(exitCode, 2);
      assert.match(err, sentence);
    }
  });

  test('what cannot be done is said in one sentence', async (t) => {
    const { client, segments } = await newSetting(t);
    await client.saveSegment('german', { condition: { customer: 'region', is: 'DE' } });
    await client.saveSegment('others', { condition: { not: { segment: 'german' } } });
    for (const args of [['show'], ['refresh'], ['delete'], ['members'], ['why', randomUUID()]]) {
      const { exitCode, err } = await segments(args[0]!, 'germans', ...args.slice(1));
      assert.equal(exitCode, 1);
      assert.match(err, /^headgate: there is no segment "germans".* did you mean german\?\n$/i);
    }
    const used = await segments('delete', 'german');
    assert.deepEqual(
      [used.exitCode, used.err],
      [1, 'headgate: The segment "german" cannot be deleted, because the segment "others" uses it.\n'],
    );
    const { folder, segments: reading } = await newSetting(t, ['analytics:read']);
    await folder.write('german.json', JSON.stringify(german));
    const refused = await reading('save', 'german', join(folder.path, 'german.json'));
    assert.equal(refused.exitCode, 1);
    assert.match(refused.err, /analytics:write.*; ask the operator for a key that has it/);
  });

  test('a failed evaluation is a failure of save and refresh', async (t) => {
    const { client, folder } = await newSetting(t);
    const saved = await client.saveSegment('german', { condition: { customer: 'region', is: 'DE' } });
    // The server seldom fails, so a proxy responds as it would.
    const failure = { at: saved.saved_at, message: 'It took too long.' };
    const proxy = await startFaultyProxy(running.headgate.url);
    t.after(() => proxy.close());
    proxy.fault = ({ method }) =>
      method === 'GET' ? null : { status: 200, body: JSON.stringify({ ...saved, failure }) };
    const segments = (...args: string[]): Promise<Ran> =>
      runWithin({ ...folder.environment, HEADGATE_URL: proxy.url }, 'segments', ...args);
    await folder.write('german.json', JSON.stringify(german));
    assert.deepEqual(await segments('save', 'german', join(folder.path, 'german.json')), {
      exitCode: 1,
      out: '',
      err: 'headgate: the segment is saved, but cannot be evaluated, so its members stay: It took too long.\n',
    });
    const refreshed = await segments('refresh', 'german', '--json');
    assert.deepEqual([refreshed.exitCode, JSON.parse(refreshed.out).failure], [1, failure]);
    assert.equal(
      refreshed.err,
      'headgate: the segment cannot be evaluated, so its members stay: It took too long.\n',
    );
  });
});
