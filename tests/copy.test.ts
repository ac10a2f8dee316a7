// `headgate copy`, run as a user runs it: from a SQLite file to PostgreSQL, and back.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { copyFileSync, existsSync, linkSync, readFileSync, symlinkSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { recordTypeNames } from '@headgate/catalogue/record-types.ts';
import { openStore } from '../server/store/open-store.ts';
import { type TestDatabase, type TestServer, testServer } from '../server/store/postgres/test-server.ts';
import { interactionRow, recordRow } from '../server/store/test-rows.ts';
import { type Api, apiOf } from './harness/api.ts';
import { failedHeadgate, oneSentence } from './harness/failed-command.ts';
import { type IssuedKey, newDatabaseFolder, runHeadgate, startHeadgate } from './harness/headgate.ts';
import { runWithin } from './harness/loading.ts';
import { readAllInteractions, readAllRecords } from './harness/read-all.ts';
import { leastRecord, uploadReferenced } from './harness/records.ts';
import { waitUntil } from './harness/waiting.ts';

const MANY_RECORDS = 40_000;
const MANY_INTERACTIONS = 6000;

interface Compared {
  readonly organisation: string;
  readonly part: string;
  readonly from_count: number;
  readonly to_count: number;
  readonly equal: boolean;
}

let folder: Awaited<ReturnType<typeof newDatabaseFolder>>;
let postgres: TestServer;
/** A database file with some records of every type. Tests copy it before they use it. */
let filled: { readonly path: string; readonly issued: IssuedKey; readonly content: Content };
let source: string;
let target: TestDatabase;

before(async () => {
  folder = await newDatabaseFolder();
  postgres = await testServer();
  const path = join(folder.folder, 'filled.db');
  filled = { path, ...(await fillByServer(`sqlite:${path}`)) };
});
after(() => folder.remove());
beforeEach(async () => {
  source = `sqlite:${join(folder.folder, `${randomUUID()}.db`)}`;
  target = await postgres.newDatabase();
});
afterEach(() => target.drop());

const within = (...args: string[]) => runWithin({}, ...args);
const ask = (sql: string) => postgres.ask(new URL(target.url).pathname.slice(1), sql);
const copyArgs = (from: string, to: string) => ['copy', '--from', from, '--to', to];
const copyAsJson = async (from: string, to: string): Promise<readonly Compared[]> =>
  JSON.parse((await runHeadgate([...copyArgs(from, to), '--json'], process.env)).stdout) as Compared[];

type Content = Readonly<Record<string, unknown>>;

/** Stores some records of every type through a server. Returns the organisation's key and content. */
async function fillByServer(database: string): Promise<{ issued: IssuedKey; content: Content }> {
  const headgate = await startHeadgate(database);
  try {
    const issued = await headgate.newKey('acme');
    const api = apiOf(headgate.url, issued.key);
    for (const type of recordTypeNames) {
      const references = await uploadReferenced(api, type);
      const records = [leastRecord(type, references), leastRecord(type, { ...references, is_deleted: true })];
      const { status, text } = await api.upload(type, records);
      assert.equal(status, 200, text);
    }
    const [shop] = await readAllRecords(api, 'shops');
    const recorded = await api.record({
      interaction_type: 'SHARE',
      item_type: 'SHOP',
      item_id: shop!.shop_id,
      event_timestamp: 1_700_000_000,
    });
    assert.equal(recorded.status, 201, recorded.text);
    return { issued, content: await readContent(api) };
  } finally {
    await headgate.stop();
  }
}

async function readContent(api: Api): Promise<Content> {
  const content: Record<string, unknown> = { interactions: await readAllInteractions(api) };
  for (const type of recordTypeNames) {
    content[type] = await readAllRecords(api, type, '&include_deleted=true');
  }
  content.uploads = (await api.request('/v1/uploads?limit=1000')).body;
  content.changes = (await api.request('/v1/changes?limit=10000')).body;
  content.usage = (await api.request('/v1/usage?by=key')).body;
  return content;
}

async function contentOf(database: string, key: string): Promise<Content> {
  const headgate = await startHeadgate(database);
  try {
    return await readContent(apiOf(headgate.url, key));
  } finally {
    await headgate.stop();
  }
}

/** Makes the source a copy of the filled database. */
function fillSource(): void {
  copyFileSync(filled.path, source.replace('sqlite:', ''));
}

test('everything is copied to PostgreSQL and back, and a key issued before works on each', async () => {
  fillSource();
  const {
    issued: { key },
    content: before,
  } = filled;
  const { stdout, stderr } = await runHeadgate(copyArgs(source, target.url), process.env);
  assert.deepEqual(await contentOf(target.url, key), before);

  const [heading, ...rows] = stdout.trimEnd().split('\n');
  assert.match(heading!, /^ORGANISATION +WHAT +FROM +TO +CONTENT$/);
  // Including those of the organisation `demo`, which the first start creates.
  assert.equal(rows.length, 2 * (recordTypeNames.length + 4));
  for (const row of rows) assert.match(row, /^(?:acme|demo) +[a-z-]+ +(\d+) +\1 +equal$/);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: none may be there
  assert.doesNotMatch(stdout + stderr, /[\x00-\x09\x0b-\x1f█░]/);
  for (const line of stderr.trimEnd().split('\n')) {
    assert.match(line, /^(?:copying|comparing) (?:acme|demo) \/ [a-z-]+: +\d+ % +\d+ of \d+$/);
  }

  const back = `sqlite:${join(folder.folder, 'back.db')}`;
  const compared = await copyAsJson(target.url, back);
  assert.deepEqual(await contentOf(back, key), before);
  assert.deepEqual(
    compared
      .filter(({ organisation }) => organisation === 'acme')
      .map(({ part }) => part)
      .sort(),
    ['interactions', 'keys', 'ledger', 'segments', ...recordTypeNames].sort(),
  );
  for (const { part, from_count, to_count, equal } of compared) {
    assert.deepEqual([to_count, equal], [from_count, true], part);
  }
});

test('a difference between the databases is shown, and the command fails', async () => {
  fillSource();
  await runHeadgate(copyArgs(source, target.url), process.env);
  const extra = randomUUID();
  await ask(`INSERT INTO tags SELECT organisation, '${extra}', name, created, updated, is_deleted
    FROM tags LIMIT 1`);
  const failed = await failedHeadgate(copyArgs(source, target.url), {});
  assert.equal(failed.exitCode, 1, failed.stderr);
  const different = failed.stdout.split('\n').filter((line) => line.endsWith('DIFFERENT'));
  assert.equal(different.length, 1, failed.stdout);
  assert.match(different[0]!, /^acme +tags +(\d+) +(\d+) +DIFFERENT$/);
  assert.match(failed.stderr, /^headgate: 1 of \d+ comparisons differ; .*Stop all writers [^\n]+\n$/m);

  const asJson = await failedHeadgate([...copyArgs(source, target.url), '--json'], {});
  assert.equal(asJson.exitCode, 1);
  assert.deepEqual(
    (JSON.parse(asJson.stdout) as Compared[]).filter(({ equal }) => !equal).map(({ part }) => part),
    ['tags'],
  );
});

test('a target whose ledger has entries of its own cannot be made equal, and the command says so', async () => {
  fillSource();
  assert.equal((await within(...copyArgs(source, target.url))).exitCode, 0);
  const uploadTo = async (database: string): Promise<void> => {
    const store = await openStore(database);
    const acme = (await store.organisations()).find(({ orgId }) => orgId === filled.issued.org_id)!;
    const entry = {
      requestId: randomUUID(),
      keyId: filled.issued.key_id,
      receivedAtMs: Date.now(),
      bytes: 1,
      received: 1,
      rejected: 0,
      causesJson: null,
    };
    const batches = [[recordRow('tags')]];
    await store.write({
      organisation: acme.organisation,
      type: 'tags',
      batches,
      idempotencyRecord: null,
      entry,
    });
    await store.close();
  };
  const assertSaid = async (): Promise<void> => {
    const { exitCode, err } = await within(...copyArgs(source, target.url));
    assert.equal(exitCode, 1);
    assert.match(err, /the ledger of the target has entries .* Copy into an empty database\n$/);
    assert.doesNotMatch(err, /again/);
  };
  await uploadTo(target.url);
  await assertSaid();
  // The ledgers have the same number of entries, and different last ones.
  await uploadTo(source);
  await assertSaid();
});

describe('a copy that is interrupted', () => {
  test('by SIGKILL or SIGINT in the middle is completed by running it again', async () => {
    await fillDirectly(source);
    for (const signal of ['SIGKILL', 'SIGINT'] as const) {
      const thereBefore = await copiedKeywords();
      const interrupted = runHeadgate(copyArgs(source, target.url), process.env);
      const ended = interrupted.then(
        () => 'completed',
        ({ signal: endedBy }: { signal: string | null }) => endedBy,
      );
      await waitUntil('more records are there', async () => (await copiedKeywords()) > thereBefore);
      interrupted.child.kill(signal);
      assert.equal(await ended, signal);
      const there = await copiedKeywords();
      assert.ok(there > 0 && there < MANY_RECORDS, `${there} records are there`);
    }

    const compared = await copyAsJson(source, target.url);
    assert.deepEqual(
      compared.filter(({ equal }) => !equal),
      [],
    );
    const counts = new Map(compared.map(({ part, to_count }) => [part, to_count]));
    assert.equal(counts.get('keywords'), MANY_RECORDS);
    assert.equal(counts.get('interactions'), MANY_INTERACTIONS);
    assert.equal(await copiedKeywords(), MANY_RECORDS);
  });

  const copiedKeywords = async (): Promise<number> => {
    const [found] = await ask(`SELECT to_regclass('keywords') IS NOT NULL AS is_there`);
    if (found!.is_there !== true) return 0;
    const [{ count } = {}] = await ask('SELECT count(*) FROM keywords');
    return Number(count);
  };

  const fillDirectly = async (database: string): Promise<void> => {
    const store = await openStore(database);
    const { organisation } = (await store.createOrganisation('acme', randomUUID(), 1))!;
    const batches = [Array.from({ length: MANY_RECORDS }, () => recordRow('keywords'))];
    await store.write({ organisation, type: 'keywords', batches, idempotencyRecord: null, entry: null });
    const interactions = Array.from({ length: MANY_INTERACTIONS }, () => interactionRow());
    await Promise.all(
      interactions.map((row) =>
        store.writeInteraction({ organisation, row, idempotencyRecord: null, entry: null }),
      ),
    );
    await store.close();
  };
});

test('copies to another schema and to another database of the same PostgreSQL server', async () => {
  await ask('CREATE SCHEMA other');
  const second = await postgres.newDatabase();
  try {
    await within(...copyArgs(`sqlite:${filled.path}`, target.url));
    for (const to of [`${target.url}?options=-csearch_path%3Dother`, second.url]) {
      const compared = await copyAsJson(target.url, to);
      assert.ok(compared.length > 0 && compared.every(({ equal }) => equal));
    }
  } finally {
    await second.drop();
  }
});

describe('an invalid copy is refused in one sentence', () => {
  const assertRefused = async (from: string, to: string, exitCode: number, says: RegExp): Promise<void> => {
    const refused = await within(...copyArgs(from, to));
    assert.equal(refused.exitCode, exitCode, refused.err);
    assert.equal(refused.out, '');
    assert.match(refused.err, oneSentence);
    assert.match(refused.err, says);
    assert.ok(!refused.err.includes(postgres.password));
  };

  test('if both sides are the same database, under any name', async () => {
    await assertRefused(source, source, 2, /the same database/);
    await within('orgs', 'create', 'acme', '--database', source);
    const path = source.replace('sqlite:', '');
    const [symbolic, hard] = [`${path}.symbolic`, `${path}.hard`];
    symlinkSync(path, symbolic);
    linkSync(path, hard);
    const names = [
      path,
      `SQLite:${path}`,
      relative(process.cwd(), path),
      join(dirname(path), '.', basename(path)),
      `${dirname(path)}/../${basename(dirname(path))}/${basename(path)}`,
      symbolic,
      hard,
    ];
    for (const name of names) await assertRefused(source, name, 2, /the same database/);
    await assertRefused(hard, symbolic, 2, /the same database/);
  });

  test('if both sides are the same PostgreSQL database, under any address', async () => {
    const sameTarget = new URL(target.url);
    sameTarget.hostname = 'localhost';
    const addresses = [
      sameTarget.href,
      target.url.replace('postgres:', 'postgresql:'),
      `${target.url}?application_name=copy`,
    ];
    for (const address of addresses) await assertRefused(target.url, address, 2, /the same database/);
  });

  test('if the target is a file that belongs to a database', async () => {
    const path = source.replace('sqlite:', '');
    const store = await openStore(source);
    try {
      for (const suffix of ['-wal', '-shm', '-journal']) {
        const before = existsSync(path + suffix) ? readFileSync(path + suffix) : null;
        await assertRefused(
          target.url,
          path + suffix,
          1,
          /belongs to the database .+\.db: name another file/,
        );
        assert.deepEqual(existsSync(path + suffix) ? readFileSync(path + suffix) : null, before);
      }
    } finally {
      await store.close();
    }
  });

  test('if a side is not the address of a database', async () => {
    await assertRefused('mysql://u:sesame@host/app', target.url, 2, /^headgate: --from must be [^\n]*mysql/);
    await assertRefused(source, 'mysql://u:sesame@host/app', 2, /^headgate: --to must be /);
  });

  test('if the source does not exist, and it is not created', async () => {
    await assertRefused(source, target.url, 1, /there is no such file/);
    assert.ok(!existsSync(source.replace('sqlite:', '')));
    await assertRefused(postgres.urlOf('nowhere'), source, 1, /there is no such database/);
  });

  test('if the target has another organisation of the same name', async () => {
    for (const database of [source, target.url]) {
      await within('orgs', 'create', 'acme', '--database', database);
    }
    await assertRefused(source, target.url, 1, /another organisation named "acme"/);
  });
});
