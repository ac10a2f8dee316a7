// `headgate changes`, `headgate uploads`, `headgate export --since`, `headgate export all` and `headgate orgs usage`.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { recordTypes } from '@headgate/catalogue/record-types.ts';
import { uploadOrder } from '@headgate/catalogue/references.ts';
import { testDatabases } from '../server/store/test-databases.ts';
import { type Api, apiOf, type UploadBody } from './harness/api.ts';
import { describeOnceOn, forEachStore } from './harness/for-each-store.ts';
import { type Headgate, type IssuedKey, startHeadgate } from './harness/headgate.ts';
import { type LoadFolder, loadFolder, type Ran, runWithin } from './harness/loading.ts';
import { readAllInteractions, readAllRecords } from './harness/read-all.ts';
import { fullRecord, idOf, leastRecord, type TestRecord } from './harness/records.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { waitUntil } from './harness/waiting.ts';

interface Change {
  readonly seq: number;
  readonly type: string;
  readonly id: string;
  readonly record: TestRecord;
}

interface Setting {
  readonly folder: LoadFolder;
  readonly api: Api;
  readonly issued: IssuedKey;
}

async function newSetting(t: TestContext, headgate: Headgate, scopes?: readonly string[]): Promise<Setting> {
  const issued = await headgate.newKey(undefined, scopes);
  const folder = await loadFolder(t, { HEADGATE_URL: headgate.url, HEADGATE_KEY: issued.key });
  return { folder, api: apiOf(headgate.url, issued.key), issued };
}

async function upload(api: Api, type: string, records: readonly unknown[]): Promise<UploadBody> {
  const { body, status, text } = await api.upload(type, records);
  assert.ok(status < 500, text);
  return body;
}

function linesIn(out: string): Change[] {
  return out
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Change);
}

const running = runningHeadgate(testDatabases[0]!);

const positionIn = ({ err }: Ran): string => /the position is (\S+); to continue/.exec(err)![1]!;

describe('headgate changes', () => {
  test('prints each change as a line, ends when it is up to date, and continues from its position', async (t) => {
    const { folder, api } = await newSetting(t, running.headgate);
    const [first, second, third] = [1, 2, 3].map(() => leastRecord('tags'));
    await upload(api, 'tags', [first, second]);
    const all = await folder.run('changes', '--after', '0');
    assert.equal(all.exitCode, 0, all.err);
    assert.deepEqual(
      linesIn(all.out).map(({ seq, type, id }) => [seq, type, id]),
      [first, second].map((tag) => [1, 'tags', idOf('tags', tag!)]),
    );
    assert.deepEqual(
      linesIn(all.out).map(({ record }) => record),
      await Promise.all(
        [first, second].map(async (tag) => (await api.read('tags', idOf('tags', tag!))).body),
      ),
    );
    assert.equal(all.err, 'the position is 1; to continue from there, give --after 1\n');
    await upload(api, 'tags', [third]);
    await upload(api, 'shops', [leastRecord('shops')]);
    const rest = await folder.run('changes', '--after', positionIn(all));
    assert.deepEqual(
      linesIn(rest.out).map(({ type }) => type),
      ['tags', 'shops'],
    );
    const ofTags = await folder.run('changes', '--after', positionIn(all), '--type', 'tags');
    assert.deepEqual(
      linesIn(ofTags.out).map(({ id }) => id),
      [idOf('tags', third!)],
    );
    const none = await folder.run('changes', '--after', positionIn(ofTags));
    assert.deepEqual([none.exitCode, none.out, positionIn(none)], [0, '', '3']);
  });

  test('refusals have a sentence and the exit code of other refusals', async (t) => {
    const { folder, api } = await newSetting(t, running.headgate);
    await upload(api, 'tags', [leastRecord('tags')]);
    const writer = await newSetting(t, running.headgate, ['data:write']);
    const wrong: [
      args: string[],
      environment: LoadFolder['environment'],
      exitCode: number,
      sentence: RegExp,
    ][] = [
      [['--after', 'yesterday'], folder.environment, 2, /--after must be a position, such as 41/],
      [[], folder.environment, 2, /changes needs --after POSITION/],
      [['--after', '0', '--type', 'tag'], folder.environment, 2, /--type must be .* did you mean tags\?/],
      [
        ['--after', '7'],
        folder.environment,
        1,
        /not available: .* beyond the last entry, 1\. To start over, export everything: headgate export all DIR\n$/,
      ],
      [['--after', '0'], writer.folder.environment, 1, /lacks a scope to read/],
      [
        ['--after', '0', '--url', 'http://127.0.0.1:9'],
        folder.environment,
        1,
        /Is the server running there\?/,
      ],
    ];
    for (const [args, environment, exitCode, sentence] of wrong) {
      const ran = await runWithin(environment, 'changes', ...args);
      assert.deepEqual([ran.exitCode, ran.out], [exitCode, ''], ran.err);
      assert.match(ran.err, sentence);
    }
  });

  test('--follow prints changes as they come until it is interrupted, and then shows its position', async (t) => {
    const { folder, api } = await newSetting(t, running.headgate);
    const { child, ended } = folder.start('changes', '--after', '0', '--follow');
    let out = '';
    child.stdout!.on('data', (chunk: Buffer) => {
      out += chunk;
    });
    for (let round = 1; round <= 3; round++) {
      await upload(api, 'tags', [leastRecord('tags')]);
      await waitUntil('it is printed', () => linesIn(out).length === round);
    }
    child.kill('SIGINT');
    const ran = await ended;
    assert.deepEqual([ran.exitCode, positionIn(ran)], [0, '3'], ran.err);
    assert.deepEqual(
      linesIn(ran.out).map(({ seq }) => seq),
      [1, 2, 3],
    );
  });
});

forEachStore((store) => {
  describeOnceOn(store, 'a follower', () => {
    test('that runs with --follow goes on after the server was killed and started again', async (t) => {
      const { database, remove } = await store.newDatabase();
      let headgate = await startHeadgate(database);
      try {
        const { folder, api } = await newSetting(t, headgate);
        const { port } = new URL(headgate.url);
        const following = folder.start('changes', '--after', '0', '--follow');
        let out = '';
        following.child.stdout!.on('data', (chunk: Buffer) => {
          out += chunk;
        });
        await upload(api, 'tags', [leastRecord('tags')]);
        await waitUntil('it is printed', () => linesIn(out).length === 1);
        await headgate.kill();
        await following.saying('retrying, because');
        headgate = await startHeadgate(database, { HEADGATE_PORT: port });
        await upload(api, 'tags', [leastRecord('tags')]);
        await waitUntil('it is printed', () => linesIn(out).length === 2);
        following.child.kill('SIGTERM');
        const ran = await following.ended;
        assert.deepEqual([ran.exitCode, positionIn(ran)], [0, '2'], ran.err);
      } finally {
        await headgate.kill();
        await remove();
      }
    });
  });
});

describe('headgate uploads', () => {
  test('lists uploads as a table or as JSON, and filters narrow the list', async (t) => {
    const { folder, api, issued } = await newSetting(t, running.headgate);
    const run = (...args: string[]): Promise<Ran> =>
      runWithin(folder.environment, 'uploads', 'list', ...args);
    const seqs = async (...args: string[]): Promise<number[]> => {
      const { exitCode, out, err } = await run(...args, '--json');
      assert.equal(exitCode, 0, err);
      return (JSON.parse(out) as { seq: number }[]).map(({ seq }) => seq);
    };
    assert.deepEqual([(await run()).out, await seqs()], ['There are no such uploads.\n', []]);

    const good = leastRecord('tags');
    const bodies = [
      await upload(api, 'tags', [good, leastRecord('tags', { name: 7 })]),
      await upload(api, 'shops', [leastRecord('shops')]),
      await upload(api, 'tags', [leastRecord('tags', { name: 7 })]),
    ];
    const { out, err } = await run();
    const [heading, ...rows] = out.trimEnd().split('\n');
    assert.match(heading!, /^ENTRY +RECEIVED +TYPE +STATUS +RECORDS +REJECTED +REQUEST ID +KEY$/);
    const expected = [
      ['3', 'tags', 'error', '1', '1', bodies[2]!.request_id],
      ['2', 'shops', 'success', '1', '0', bodies[1]!.request_id],
      ['1', 'tags', 'partial', '2', '1', bodies[0]!.request_id],
    ];
    assert.deepEqual(
      rows.map((row) => row.split(/ +/).toSpliced(1, 1)),
      expected.map((cells) => [...cells, issued.key_id]),
    );
    for (const row of rows) assert.match(row, / \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ /);
    assert.equal(err, '');

    assert.deepEqual(await seqs(), [3, 2, 1]);
    assert.deepEqual(await seqs('--type', 'tags'), [3, 1]);
    assert.deepEqual(await seqs('--status', 'partial'), [1]);
    assert.deepEqual(await seqs('--key', issued.key_id), [3, 2, 1]);
    assert.deepEqual(await seqs('--key', 'another'), []);
    assert.deepEqual(await seqs('--from', '2000-01-01', '--to', '2000-01-02T00:00:00Z'), []);
    assert.deepEqual(await seqs('--from', '2000-01-01'), [3, 2, 1]);
    assert.deepEqual(await seqs('--limit', '3'), [3, 2, 1]);
    const limited = await run('--limit', '2');
    assert.equal(limited.out.trimEnd().split('\n').length, 3);
    assert.equal(limited.err, 'only the newest 2 are shown; to see more, give a larger --limit\n');

    for (const [args, sentence] of [
      [['--status', 'bad'], /--status must be one of success, partial, error, not "bad"/],
      [['--from', 'yesterday'], /^headgate: --from must be /],
      [['--to', '2024-02-30'], /^headgate: --to must be /],
      [['--limit', '0'], /--limit must be a whole number/],
      [['--type', 'tag'], /did you mean tags\?/],
    ] as const) {
      const ran = await run(...args);
      assert.equal(ran.exitCode, 2, ran.err);
      assert.match(ran.err, sentence);
    }
  });

  test('shows an upload and why records were rejected', async (t) => {
    const { folder, api } = await newSetting(t, running.headgate);
    const run = (...args: string[]): Promise<Ran> =>
      runWithin(folder.environment, 'uploads', 'show', ...args);
    const [good, bad] = [leastRecord('tags'), leastRecord('tags', { name: 7 })];
    const { request_id } = await upload(api, 'tags', [
      good,
      bad,
      { ...good, name: 8 },
      { ...good, nam: 'x' },
    ]);
    const { exitCode, out, err } = await run(request_id);
    assert.deepEqual([exitCode, err], [0, '']);
    for (const line of [
      new RegExp(`^Request id +${request_id}$`, 'm'),
      /^Type +tags$/m,
      /^Status +partial$/m,
      /^Records +4 received$/m,
      /^ +3 rejected$/m,
      new RegExp(`^ +2 +wrong_type +name +record 1, ${idOf('tags', bad)}: name must be `, 'm'),
      /^ +record 2, \S+: name must be /m,
      /^ +1 +unknown_field +nam +record 3, .*nam is not a field/m,
    ]) {
      assert.match(out, line);
    }
    const asJson = await run(request_id, '--json');
    assert.deepEqual(JSON.parse(asJson.out), (await api.request(`/v1/uploads/${request_id}`)).body);
    const missing = await run(randomUUID());
    assert.deepEqual([missing.exitCode, missing.out], [1, '']);
    assert.match(missing.err, /there is no upload with the request id/);
  });
});

describe('headgate export', () => {
  /** Uploads two records of every type, the second marked as deleted, and two interactions. */
  async function fill(api: Api): Promise<Record<string, TestRecord>> {
    const firsts: Record<string, TestRecord> = {};
    for (const type of uploadOrder(recordTypes)) {
      const references = Object.entries(recordTypes[type].fields).flatMap(([name, { references: target }]) =>
        typeof target === 'string' ? [[name, idOf(target as typeof type, firsts[target]!)]] : [],
      );
      const values = Object.fromEntries(references) as TestRecord;
      firsts[type] = fullRecord(type, { ...values, is_deleted: false });
      // Other records refer to the first, which is deleted later.
      const { status, text } = await api.upload(type, [
        firsts[type],
        fullRecord(type, { ...values, is_deleted: true }),
      ]);
      assert.equal(status, 200, text);
    }
    const interaction = { interaction_type: 'SHARE', item_type: 'SHOP', item_id: firsts.shops!.shop_id };
    for (const event_timestamp of [1_700_000_000, 1_700_000_001]) {
      assert.equal((await api.record({ ...interaction, event_timestamp })).status, 201);
    }
    return firsts;
  }

  async function contentOf(api: Api): Promise<Record<string, unknown>> {
    const content: Record<string, unknown> = { interactions: await readAllInteractions(api) };
    for (const type of uploadOrder(recordTypes)) {
      content[type] = await readAllRecords(api, type, '&include_deleted=true');
    }
    return content;
  }

  test('all writes everything and the position, from which --since continues; load takes each folder', async (t) => {
    const source = await newSetting(t, running.headgate);
    const target = await newSetting(t, running.headgate);
    const { shops, tags } = await fill(source.api);
    const everything = join(source.folder.path, 'everything');
    const all = await source.folder.run('export', 'all', 'everything');
    assert.deepEqual([all.exitCode, all.out], [0, ''], all.err);
    assert.match(
      all.err,
      /^30 records and interactions are in everything\nthe position is (\d+);.* --since \1\n$/,
    );
    const position = positionIn(all);
    assert.equal(await source.folder.read('everything/position'), `${position}\n`);
    assert.deepEqual(
      await source.folder.names('everything'),
      [
        'position',
        ...[...uploadOrder(recordTypes), 'user-interactions'].map((type) => `${type}.ndjson`),
      ].sort(),
    );
    const loaded = await target.folder.run('load', everything);
    assert.equal(loaded.exitCode, 0, loaded.out + loaded.err);
    assert.doesNotMatch(loaded.out + loaded.err, /skipped|position/);
    assert.deepEqual(await contentOf(target.api), await contentOf(source.api));

    await upload(source.api, 'shops', [{ ...shops!, name: 'renamed', updated: null }]);
    await upload(source.api, 'tags', [{ ...tags!, is_deleted: true, updated: null }, leastRecord('tags')]);
    await source.api.record({
      interaction_type: 'SHARE',
      item_type: 'SHOP',
      item_id: shops!.shop_id,
      event_timestamp: 1_700_000_002,
    });
    const since = ['--since', position];
    const ofTags = await source.folder.run('export', 'tags', ...since, '--out', 'tags.csv');
    assert.equal(ofTags.exitCode, 0, ofTags.err);
    assert.match(ofTags.err, /^2 tags are in tags\.csv\nthe position is \d+; .* --since \d+\n$/);
    const [heading, ...rows] = (await source.folder.read('tags.csv')).trimEnd().split('\n');
    assert.equal(heading, Object.keys(recordTypes.tags.fields).join(','));
    assert.equal(rows.length, 2);
    assert.equal(rows.filter((row) => row.endsWith(',true')).length, 1, 'a deletion is a change');
    const later = await source.folder.run('export', 'tags', '--since', positionIn(ofTags));
    assert.deepEqual([later.exitCode, later.out, positionIn(later)], [0, '', positionIn(ofTags)]);

    const changed = await source.folder.run('export', 'all', 'changed', ...since);
    assert.match(changed.err, /^4 records and interactions are in changed\n/);
    const reloaded = await target.folder.run('load', join(source.folder.path, 'changed'));
    assert.equal(reloaded.exitCode, 0, reloaded.out + reloaded.err);
    assert.deepEqual(await contentOf(target.api), await contentOf(source.api));
  });

  test('all replaces files only with --force, and reports what it cannot do', async (t) => {
    const { folder, api } = await newSetting(t, running.headgate);
    await upload(api, 'tags', [leastRecord('tags')]);
    await folder.write('taken/tags.ndjson', 'of yesterday');
    const refused = await folder.run('export', 'all', 'taken');
    assert.equal(refused.exitCode, 1);
    assert.match(refused.err, /taken\/tags\.ndjson exists already; name another folder, or give --force/);
    assert.deepEqual(await folder.names('taken'), ['tags.ndjson']);
    const forced = await folder.run('export', 'all', 'taken', '--force');
    assert.equal(forced.exitCode, 0, forced.err);
    assert.match(await folder.read('taken/tags.ndjson'), /^\{"tag_id"/);

    const gone = await folder.run('export', 'all', 'gone', '--since', '9');
    assert.equal(gone.exitCode, 1);
    assert.match(gone.err, /changes after this position are not available.*; gone is not complete\n$/);
    assert.ok(!(await folder.names('gone')).includes('position'));
    const wrong = await folder.run('export', 'tags', '--since', 'yesterday');
    assert.equal(wrong.exitCode, 2);
    assert.match(
      wrong.err,
      /--since must be a position.*; for a date, .*`headgate uploads list --to DATE --limit 1`/,
    );
    const reader = await newSetting(t, running.headgate, ['data:read:tags']);
    const limited = await reader.folder.run('export', 'all', 'some');
    assert.equal(limited.exitCode, 1);
    assert.match(limited.err, /lacks the scope .*; some is not complete/);
    assert.ok(!(await reader.folder.names('some')).includes('position'));
  });

  test('a change of a record that no longer exists is left out', async (t) => {
    const { folder, api } = await newSetting(t, running.headgate);
    const [kept, erased] = [leastRecord('tags'), leastRecord('tags')];
    await upload(api, 'tags', [kept, erased]);
    using direct = new DatabaseSync(running.headgate.database.replace('sqlite:', ''), { timeout: 10_000 });
    direct.prepare('DELETE FROM tags WHERE tag_id = ?').run(idOf('tags', erased));
    const { exitCode, out } = await folder.run('export', 'tags', '--since', '0');
    assert.equal(exitCode, 0);
    assert.deepEqual(
      out
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as TestRecord).tag_id),
      [kept.tag_id],
    );
  });
});

forEachStore((store) => {
  const running = runningHeadgate(store);

  test('orgs usage adds up what organisations have uploaded', async (t) => {
    const { headgate } = running;
    const one = await newSetting(t, headgate);
    const other = await newSetting(t, headgate);
    const shop = leastRecord('shops');
    await upload(one.api, 'shops', [shop, leastRecord('shops', { name: 7 })]);
    await upload(one.api, 'tags', [leastRecord('tags')]);
    const item = { interaction_type: 'SHARE', item_type: 'SHOP', item_id: shop.shop_id };
    await one.api.record({ ...item, event_timestamp: 1_700_000_000 });
    await upload(other.api, 'tags', [leastRecord('tags'), leastRecord('tags')]);

    interface Usage {
      readonly org_id: string;
      readonly name: string;
      readonly from: string;
      readonly to: string;
      readonly usage?: readonly Readonly<Record<string, unknown>>[];
      readonly total: Readonly<Record<string, number>>;
    }
    const usageOf = (...args: string[]): Promise<Usage[]> => headgate.command('orgs', 'usage', ...args);
    const today = new Date().toISOString().slice(0, 10);
    const all = await usageOf();
    const own = all.find(({ org_id }) => org_id === one.issued.org_id)!;
    assert.equal(own.to, today);
    const { bytes, ...sums } = own.total;
    assert.ok(bytes! > 0);
    assert.deepEqual(sums, {
      uploads: 3,
      received: 4,
      created: 3,
      updated: 0,
      unchanged: 0,
      rejected: 1,
      interactions: 1,
    });
    assert.equal(own.usage, undefined);
    assert.equal(all.find(({ org_id }) => org_id === other.issued.org_id)!.total.received, 2);

    const [byType, ...others] = await usageOf('--org', one.issued.org_id, '--by', 'type');
    assert.deepEqual(others, []);
    assert.deepEqual(
      byType!.usage!.map(({ type, received, interactions }) => [type, received, interactions]),
      [
        ['interactions', 1, 1],
        ['shops', 2, 0],
        ['tags', 1, 0],
      ],
    );
    assert.deepEqual(byType!.total, own.total);
    const [before] = await usageOf('--org', own.name, '--from', '2020-01-01', '--to', '2020-01-31');
    assert.equal(before!.total.uploads, 0);

    const run = (...args: string[]): Promise<Ran> =>
      runWithin({ HEADGATE_DATABASE: headgate.database }, 'orgs', 'usage', ...args);
    const table = await run('--org', own.name, '--by', 'day');
    const [period, heading, ...rows] = table.out.trimEnd().split('\n');
    assert.match(period!, new RegExp(`^From \\d{4}-\\d\\d-\\d\\d to ${today}, in UTC:$`));
    assert.match(heading!, /^DAY +UPLOADS +RECEIVED +CREATED .*INTERACTIONS +ORGANISATION$/);
    assert.deepEqual(
      rows.map((row) => row.split(/ {2,}/).slice(0, 4)),
      [[today, '3', '4', '3']],
    );
    assert.equal((await run()).out.trimEnd().split('\n').length, 2 + all.length);
    for (const [args, sentence, exitCode] of [
      [['--by', 'week'], /--by must be one of day, type, key, not "week"/, 2],
      [['--from', 'yesterday'], /^headgate: --from must be /, 2],
      [['--from', '2026-02-01', '--to', '2026-01-01'], /--from and --to must be in order/, 2],
      [['--org', 'nobody at all'], /there is no organisation/, 1],
    ] as const) {
      const ran = await run(...args);
      assert.equal(ran.exitCode, exitCode, ran.err);
      assert.match(ran.err, sentence);
    }
  });
});
