// Runs every example in the docs: the commands of a page work, and print what the page shows.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { HeadgateClient } from '@headgate/client/client.ts';
import { freePort } from '../server/store/postgres/test-server.ts';
import { isThorough } from '../server/store/test-thoroughness.ts';
import {
  assertPrints,
  assertShows,
  type Example,
  examplesOf,
  markOf,
  partAt,
  runInOneShell,
  type Shown,
} from './harness/docs-page.ts';
import { type Headgate, newDatabaseFolder, runHeadgate, startHeadgate } from './harness/headgate.ts';
import { SyncedTables, syncedTypes } from './harness/synced-tables.ts';
import { hasProgram } from './harness/waiting.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Why an example may be skipped: a test cannot provide what it needs, and other tests check it by other means. */
const reasonsToLeaveOut: Readonly<Record<string, string>> = {
  checkout: 'installs and starts the checkout, which is how these tests were started',
  server: 'starts a server, which goes on until it is stopped; one is running beside the examples',
  docker: 'needs a container engine; packaging-deploy.test.ts runs the steps of the Dockerfile',
  kubernetes: 'needs a cluster; packaging-deploy.test.ts checks the manifest against the code',
  systemd: 'needs a running systemd; packaging-deploy.test.ts has the unit verified',
  postgres: 'needs a database server at the address in the example; the store is tested on a real one',
  citus: 'needs a cluster; the suites run on one where HEADGATE_TEST_CITUS_URL names it',
  package: 'needs a package; packaging.test.ts and client-package.test.ts make, install and use them',
  prometheus: 'configures a Prometheus; metrics-prometheus.test.ts has a real one scrape with the same rules',
  log: 'is printed by the server; request-log.test.ts checks every field of such a line',
};

/** Programs on pages, marked with `file=NAME`, that have tests of their own below. */
const programsWithOwnTests: readonly string[] = ['sync.mts'];

/** The folder of the programs that stand in for those of the machine. */
const OWN_PROGRAMS = '.programs';

const compiler = join(root, 'node_modules/.bin/tsc');

/** The programs that examples use, besides those of npm, and that this machine does not have. */
const lacking: string[] = [];
for (const program of ['curl', 'jq', 'sqlite3']) if (!(await hasProgram(program))) lacking.push(program);

const languages = ['sh', 'ts', 'sql', 'json', 'text'];

const pages = ['README.md', 'client/README.md', ...(await pagesIn('docs'))];

async function pagesIn(folder: string): Promise<readonly string[]> {
  const names = await readdir(join(root, folder));
  return names.filter((name) => name.endsWith('.md')).map((name) => `${folder}/${name}`);
}

const examplesByPage = new Map(
  await Promise.all(
    pages.map(async (page) => [page, examplesOf(await readFile(join(root, page), 'utf8'))] as const),
  ),
);

/**
 * The page whose commands run with the real npx, which takes four times as long as most of them. The other pages have a
 * script in its place, unless the tests run thoroughly.
 */
const pageWithNpx = 'docs/quick-start.md';

/** Pages whose commands use the database itself. The others share a server, and each has an organisation of its own. */
const pagesWithDatabase: readonly string[] = [
  'README.md',
  'docs/backup.md',
  'docs/changes.md',
  'docs/keys.md',
  'docs/sql.md',
];

/** The page whose TypeScript client-package.test.ts compiles and runs with the package. */
const pageOfPackage = 'client/README.md';

for (const [page, examples] of examplesByPage) describe(page, () => checkPage(page, examples));

function checkPage(page: string, examples: readonly Example[]): void {
  for (const example of examples) {
    const { line, language } = example;
    const needs = markOf(example, 'needs');
    const file = markOf(example, 'file');
    if (file !== null) {
      it(`line ${line} is a program with its own tests`, () =>
        assert.ok(programsWithOwnTests.includes(file), `${file} has none`));
    }
    if (needs === null) {
      it(`line ${line} is in a language that can be run`, () =>
        assert.ok(languages.includes(language), `${language} is none of ${languages.join(', ')}`));
    } else {
      it(`line ${line} is skipped for a known reason`, () =>
        assert.ok(Object.hasOwn(reasonsToLeaveOut, needs), `${needs} is no such reason`));
    }
  }
  const typed = examples.filter((example) => isTyped(example));
  const isPart = (example: Example): boolean =>
    example.language === 'ts' && markOf(example, 'file') === null && page !== pageOfPackage;
  const parts = examples.filter(isPart);
  if (typed.length === 0 && parts.length === 0) return;
  const missing = lacking.filter((program) => typed.some(({ text }) => text.includes(program)));
  describe('when run', { skip: missing.length > 0 && `this machine has no ${missing.join(', ')}` }, () =>
    tryPage(page, examples, typed, parts),
  );
}

function tryPage(
  page: string,
  examples: readonly Example[],
  typed: readonly Example[],
  parts: readonly Example[],
): void {
  const tried: { shown?: readonly Shown[]; given?: string } = {};
  let place: Place | undefined;
  before(async () => {
    place = await preparePlace(pagesWithDatabase.includes(page));
    if (!isThorough && page !== pageWithNpx) await replaceNpx(place);
    const scripts = typed.map(({ text }) => filledIn(text, place!));
    tried.given = scripts.join('\n');
    tried.shown = await runInOneShell(scripts, place.folder, environmentOf(place));
  });
  after(() => place?.remove());
  for (const [at, example] of typed.entries()) {
    it(`line ${example.line} works`, () => {
      const { exitCode, stdout, stderr } = tried.shown![at]!;
      assert.equal(exitCode, Number(markOf(example, 'exit') ?? 0), `it printed:\n${stdout}\n${stderr}`);
    });
  }
  if (parts.length > 0) {
    it('the parts of its TypeScript make a program that compiles and runs', () => tryProgram(parts, place!));
  }
  for (const [at, example] of examples.entries()) {
    if (markOf(example, 'needs') !== null || !['json', 'text'].includes(example.language)) continue;
    it(`line ${example.line} shows the actual output`, () => {
      const source = examples[at - 1];
      assert.ok(source !== undefined && isTyped(source), 'there is no example before it that prints it');
      const { stdout, stderr } = tried.shown![typed.indexOf(source)]!;
      if (example.language === 'text') {
        assertPrints(stdout === '' ? stderr : stdout, example.text, tried.given!);
      } else {
        const answer = JSON.parse(stdout) as unknown;
        const part = example.shows === null ? answer : partAt(answer, example.shows);
        assertShows(part, JSON.parse(example.text), tried.given!);
      }
    });
  }
}

function isTyped(example: Example): boolean {
  return example.language === 'sh' && markOf(example, 'needs') === null;
}

interface Server {
  readonly headgate: Headgate;
  readonly metricsPort: number;
}

/** Starts a server on ./data in the folder. */
async function startServer(folder: string): Promise<Server> {
  await mkdir(join(folder, 'data'));
  const metricsPort = await freePort();
  const headgate = await startHeadgate(`sqlite:${join(folder, 'data/headgate.db')}`, {
    HEADGATE_METRICS_PORT: String(metricsPort),
  });
  return { headgate, metricsPort };
}

interface Place extends Server {
  readonly folder: string;
  readonly key: string;
  remove(): Promise<void>;
}

/** Makes a folder in which `npx headgate` is installed, with a server on ./data in it or with the shared server. */
async function preparePlace(hasDatabase: boolean): Promise<Place> {
  const { folder, remove } = await newDatabaseFolder();
  try {
    const packages = join(folder, 'node_modules');
    await mkdir(join(packages, '.bin'), { recursive: true });
    await symlink(join(root, 'node_modules/.bin/headgate'), join(packages, '.bin/headgate'));
    // No page shows curl's progress. If the response is an error, the exit code is 22, which a page has to mark.
    await writeFile(join(folder, '.curlrc'), 'silent\nshow-error\nfail-with-body\n');
    if (!hasDatabase) {
      const { key } = await shared!.headgate.newKey();
      return { ...shared!, folder, key, remove };
    }
    const server = await startServer(folder);
    const removeAll = async (): Promise<void> => {
      await server.headgate.stop();
      await remove();
    };
    return { ...server, folder, key: firstKeyOf(server.headgate), remove: removeAll };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Makes `npx` a script that starts what is installed in the folder, and does nothing else. */
async function replaceNpx({ folder }: Place): Promise<void> {
  const script = '#!/bin/sh\nprogram=$1\nshift\nexec "$HOME/node_modules/.bin/$program" "$@"\n';
  await mkdir(join(folder, OWN_PROGRAMS));
  await writeFile(join(folder, OWN_PROGRAMS, 'npx'), script, { mode: 0o755 });
}

let builtClient: { folder: string; remove(): Promise<void> } | undefined;
/** Builds the client as it is published: compiled, and importable by its package name. */
before(async () => {
  builtClient = await newDatabaseFolder();
  const { folder } = builtClient;
  await cp(join(root, 'client/package.json'), join(folder, 'package.json'));
  const project = join(root, 'client/tsconfig.build.json');
  await promisify(execFile)(process.execPath, [compiler, '-p', project, '--outDir', join(folder, 'dist')]);
});
after(() => builtClient?.remove());

let shared: Server | undefined;
let sharedFolder: { folder: string; remove(): Promise<void> } | undefined;
before(async () => {
  sharedFolder = await newDatabaseFolder();
  shared = await startServer(sharedFolder.folder);
});
after(async () => {
  await shared?.headgate.stop();
  await sharedFolder?.remove();
});

/** Fills in what a reader would: the address and the key of their own server. */
function filledIn(text: string, { headgate, metricsPort, key }: Place): string {
  return text
    .replaceAll('http://127.0.0.1:8080', headgate.url)
    .replaceAll(':9464', `:${metricsPort}`)
    .replaceAll('hg_…', key);
}

async function tryProgram(parts: readonly Example[], place: Place): Promise<void> {
  const program = parts.map(({ text }) => filledIn(text, place)).join('\n\n');
  await prepareProgram(place, 'page.ts', program);
  await promisify(execFile)(process.execPath, ['page.ts'], { cwd: place.folder, env: environmentOf(place) });
}

/** Installs the packages that a program of a page uses, and compiles the program. */
async function prepareProgram({ folder }: Place, name: string, program: string): Promise<void> {
  const packages = join(folder, 'node_modules');
  await cp(builtClient!.folder, join(packages, '@headgate/client'), { recursive: true });
  for (const installed of ['@types', 'pg']) {
    await symlink(join(root, 'node_modules', installed), join(packages, installed));
  }
  await writeFile(join(folder, name), program);
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  const strictly = ['--noEmit', '--strict', '--target', 'esnext', '--module', 'nodenext', '--types', 'node'];
  // Checking the declarations would take most of the time. client-package.test.ts checks those of the client.
  const args = [compiler, ...strictly, '--skipLibCheck', name];
  await promisify(execFile)(process.execPath, args, { cwd: folder }).catch(({ stdout }) =>
    assert.fail(stdout),
  );
}

/** Returns the key of the organisation `demo`, which the first start created. */
function firstKeyOf(headgate: Headgate): string {
  return /hg_\w+/.exec(headgate.output())![0];
}

function environmentOf({ folder, headgate, key }: Place): NodeJS.ProcessEnv {
  const node = join(process.execPath, '..');
  // The variables that npm sets for the tests are not part of a reader's environment.
  const environment = Object.entries(process.env).filter(([name]) => !/^(?:HEADGATE|npm)_/.test(name));
  return {
    ...Object.fromEntries(environment),
    PATH: [join(folder, OWN_PROGRAMS), node, process.env.PATH].join(delimiter),
    HOME: folder,
    HEADGATE_URL: headgate.url,
    HEADGATE_KEY: key,
  };
}

describe('the queries of docs/sql.md', () => {
  const queries = examplesByPage.get('docs/sql.md')!.filter(({ language }) => language === 'sql');
  it('are at least five', () => assert.ok(queries.length >= 5));
  let key: string;
  before(async () => {
    const { folder, remove } = await newDatabaseFolder();
    try {
      ({ key } = await shared!.headgate.newKey());
      const env = { ...process.env, HEADGATE_URL: shared!.headgate.url, HEADGATE_KEY: key };
      await runHeadgate(['sample', join(folder, 'sample'), '--customers', '50'], env);
      await runHeadgate(['load', join(folder, 'sample'), '--rejected', join(folder, 'rejected')], env);
    } finally {
      await remove();
    }
  });
  const rowsOf = async (text: string, apiKey = key): Promise<readonly unknown[]> => {
    const client = new HeadgateClient({ url: shared!.headgate.url, apiKey });
    return (await client.sql(text)).rows;
  };
  for (const { line, text } of queries) {
    it(`line ${line} returns rows`, async () => {
      assert.ok((await rowsOf(text)).length > 0, 'it found no rows');
    });
  }

  it('credit each purchase once, to the last touch within the window', async () => {
    const { key: apiKey } = await shared!.headgate.newKey();
    const client = new HeadgateClient({ url: shared!.headgate.url, apiKey });
    const [student, shop, otherShop, offer] = [1, 2, 3, 4].map(() => randomUUID()) as [
      string,
      string,
      string,
      string,
    ];
    const region = 'GB';
    await client.upload('customers', [{ customer_id: student, user_id: randomUUID(), region }]);
    await client.upload('shops', [
      { shop_id: shop, name: 'Corner Books', region },
      { shop_id: otherShop, name: 'Harbour Coffee', region },
    ]);
    const offered = {
      offer_id: offer,
      shop_id: shop,
      name: 'A tenth',
      type: 'percentage',
      value: 10,
      region,
    };
    await client.upload('offers', [offered]);
    const touch = (event_timestamp: string, item_id: string, isRecommended: boolean) => ({
      interaction_type: 'PAGE_VIEW' as const,
      item_type: item_id === offer ? ('OFFER' as const) : ('SHOP' as const),
      item_id,
      student_id: student,
      event_timestamp,
      source: isRecommended ? ('SERVICE' as const) : null,
    });
    await client.upload('interactions', [
      touch('2026-03-01T10:00:00Z', shop, false),
      touch('2026-03-02T10:00:00Z', shop, true),
      touch('2026-03-02T11:00:00Z', offer, true),
      touch('2026-03-03T10:00:00Z', otherShop, false),
      touch('2026-03-20T10:00:00Z', shop, true),
      touch('2026-03-20T10:00:00Z', shop, false),
    ]);
    const purchase = (created: string, amount: number, more: object = {}) => ({
      transaction_id: randomUUID(),
      shop_id: shop,
      region,
      savings: 0,
      amount,
      student_id: student,
      created,
      ...more,
    });
    await client.upload('transactions', [
      purchase('2026-03-01T09:00:00Z', 1),
      purchase('2026-03-01T11:00:00Z', 2),
      purchase('2026-03-04T10:00:00Z', 4),
      purchase('2026-03-09T11:00:00Z', 8),
      purchase('2026-03-09T11:00:01Z', 16),
      purchase('2026-03-20T12:00:00Z', 32),
      purchase('2026-03-20T12:00:00Z', 64, { is_deleted: true }),
    ]);
    const { text } = queries.find((query) => query.text.includes('ASOF'))!;
    assert.deepEqual(await rowsOf(text, apiKey), [
      ['browsing', 2, 34],
      ['nothing', 2, 17],
      ['recommendation', 2, 12],
    ]);
  });
});

describe('sync.mts of docs/changes.md', () => {
  const { text } = examplesByPage.get('docs/changes.md')!.find((one) => markOf(one, 'file') === 'sync.mts')!;
  const shop = { shop_id: randomUUID(), name: 'Corner Books', region: 'GB' };
  const otherShop = { shop_id: randomUUID(), name: 'Harbour Coffee', region: 'IE' };
  const purchase = {
    transaction_id: randomUUID(),
    shop_id: shop.shop_id,
    region: 'GB',
    savings: 1.5,
    amount: 10.25,
    created: '2026-03-01T10:15:00.25Z',
  };
  const view = {
    interaction_type: 'PAGE_VIEW',
    item_type: 'SHOP',
    item_id: shop.shop_id,
    event_timestamp: '2026-03-01T10:14:00Z',
  } as const;
  let place: Place;
  let client: HeadgateClient;
  let tables: SyncedTables;
  before(async () => {
    place = await preparePlace(false);
    await prepareProgram(place, 'sync.mts', text);
    const { url, newKey, anotherKey } = place.headgate;
    const { key: apiKey, org_id } = await newKey();
    client = new HeadgateClient({ url, apiKey });
    const { key } = await anotherKey(org_id, ['data:read', 'interactions:read']);
    tables = await SyncedTables.prepare(client, (databaseUrl) =>
      spawn(process.execPath, ['sync.mts'], {
        cwd: place.folder,
        env: { ...environmentOf(place), HEADGATE_KEY: key, WAREHOUSE_URL: databaseUrl },
        stdio: ['ignore', 'ignore', 'pipe'],
      }),
    );
  });
  after(async () => {
    try {
      await tables?.remove();
    } finally {
      await place?.remove();
    }
  });
  const counts = async (): Promise<readonly number[]> =>
    (await tables.stored()).slice(0, syncedTypes.length).map(({ length }) => length);

  it('copies everything, and follows changes and deletions', async () => {
    await client.upload('shops', [shop, otherShop]);
    await client.upload('transactions', [purchase]);
    await client.record(view);
    tables.start();
    await tables.assertCurrent();
    assert.deepEqual(await counts(), [2, 1, 1]);

    await client.upload('shops', [
      { ...shop, name: 'Corner Books & Maps' },
      { ...otherShop, is_deleted: true },
    ]);
    await client.record(view);
    await tables.assertCurrent();
    assert.deepEqual(await counts(), [1, 1, 2]);
  });

  it('continues where it was after it was killed in the middle of a page', async () => {
    await tables.kill();
    const stored = await tables.stored();
    await client.upload('shops', [{ ...shop, name: 'Corner Maps' }]);
    await client.upload('transactions', [{ ...purchase, amount: 99 }]);
    await tables.killWhileItWrites('transactions');
    assert.deepEqual(await tables.stored(), stored, 'a part of the page was committed');

    await client.upload('shops', [otherShop]);
    await client.record(view);
    tables.start();
    await tables.assertCurrent();
    assert.deepEqual(await counts(), [2, 1, 3]);
  });

  it('starts over if its position is not available, even if it is killed in the meantime', async () => {
    await tables.kill();
    await tables.ask(`UPDATE headgate_position SET position = '1000000'`);
    await tables.ask(`INSERT INTO shops VALUES (gen_random_uuid(), 'A shop that no longer exists', 'GB')`);
    await tables.killWhileItWrites('transactions');
    assert.deepEqual(await counts(), [3, 1, 3], 'a part of the copy was committed');

    tables.start();
    await tables.assertCurrent();
    assert.deepEqual(await counts(), [2, 1, 3]);
  });
});
