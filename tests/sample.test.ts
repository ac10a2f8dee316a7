// `headgate sample` as a process of its own: all its records are accepted, and if it is interrupted it leaves no files.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { recordTypeNames, recordTypes } from '@headgate/catalogue/record-types.ts';
import { uploadOrder } from '@headgate/catalogue/references.ts';
import { times } from '../server/store/test-thoroughness.ts';
import { apiOf, type Counts, totals } from './harness/api.ts';
import { forEachStore } from './harness/for-each-store.ts';
import { commandLine, newDatabaseFolder, runHeadgate } from './harness/headgate.ts';
import { mountNamespaceFlags, noMountNamespace } from './harness/mount-namespace.ts';
import { readAllInteractions, readAllRecords } from './harness/read-all.ts';
import { idOf, type TestRecord } from './harness/records.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { waitUntil } from './harness/waiting.ts';

const CUSTOMERS = times(200, 40);
const FEW_CUSTOMERS = 30;
const MOST_RECORDS = 5000;
const INTERACTIONS_AT_ONCE = 16;

let folder: Awaited<ReturnType<typeof newDatabaseFolder>>;
/** The folders of a larger sample, and of a small one in two formats. */
let [many, few, fewPacked] = ['', '', ''];
before(async () => {
  folder = await newDatabaseFolder();
  [many, few, fewPacked] = ['many', 'few', 'packed'].map((name) => join(folder.folder, name)) as [
    string,
    string,
    string,
  ];
  await runHeadgate(['sample', many, '--customers', `${CUSTOMERS}`, '--format', 'ndjson'], process.env);
  await runHeadgate(['sample', few, '--customers', `${FEW_CUSTOMERS}`, '--format', 'ndjson'], process.env);
  await runHeadgate(['sample', fewPacked, '--customers', `${FEW_CUSTOMERS}`, '--gzip'], process.env);
});
after(() => folder.remove());

function recordsIn(ndjson: Buffer): TestRecord[] {
  return ndjson
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as TestRecord);
}

function withoutNulls(record: TestRecord): TestRecord {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null));
}

forEachStore((store) => {
  const running = runningHeadgate(store);

  test('everything is accepted, the types in the order of upload', async () => {
    const api = await running.newApi();
    for (const type of [...uploadOrder(recordTypes), 'user-interactions']) {
      const records = recordsIn(await readFile(join(many, `${type}.ndjson`)));
      if (type === 'user-interactions') {
        const waiting = records.values();
        const sendAll = async (): Promise<void> => {
          for (const record of waiting) {
            const { status, text } = await api.record(record);
            assert.equal(status, 201, text);
          }
        };
        await Promise.all(Array.from({ length: INTERACTIONS_AT_ONCE }, sendAll));
        continue;
      }
      for (let first = 0; first < records.length; first += MOST_RECORDS) {
        const slice = records.slice(first, first + MOST_RECORDS);
        const { status, body, text } = await api.upload(type, slice);
        assert.equal(status, 200, text);
        const expected: Counts = {
          received: slice.length,
          created: slice.length,
          updated: 0,
          unchanged: 0,
          rejected: 0,
        };
        assert.deepEqual(totals(body), expected, type);
      }
    }
  });

  test('`headgate load` accepts the folder, and everything reads back as written', async () => {
    const { key } = await running.headgate.newKey();
    await runHeadgate(['load', fewPacked, '--rejected', join(folder.folder, `rejected on ${store.name}`)], {
      ...process.env,
      HEADGATE_URL: running.headgate.url,
      HEADGATE_KEY: key,
    });
    const api = apiOf(running.headgate.url, key);
    for (const type of recordTypeNames) {
      const stored = await readAllRecords(api, type, '&include_deleted=true');
      const written = recordsIn(await readFile(join(few, `${type}.ndjson`)));
      const byId = (one: TestRecord, other: TestRecord): number =>
        idOf(type, one) < idOf(type, other) ? -1 : 1;
      assert.deepEqual(stored.map(withoutNulls).sort(byId), written.sort(byId), type);
    }
    const interactions = await readAllInteractions(api);
    const written = recordsIn(await readFile(join(few, 'user-interactions.ndjson')));
    assert.equal(interactions.length, written.length);
  });
});

test('a folder that cannot be created is reported at once', async () => {
  const running = runHeadgate(['sample', '/proc/sample'], process.env);
  await assert.rejects(running, {
    code: 1,
    stderr: 'headgate: no folder can be made at "/proc/sample"; choose another\n',
  });
});

test('a full disk is reported in one sentence, and nothing is left', async (t) => {
  const flags = await mountNamespaceFlags();
  if (flags === null) return t.skip(noMountNamespace);
  const disk = join(folder.folder, 'disk');
  await mkdir(disk);
  const script = `mount -t tmpfs -o size=4m tmpfs "$0" && { "$@"; echo "exit code $?"; ls -A "$0/sample" "$0"; }`;
  const [program, ...args] = commandLine(['sample', join(disk, 'sample'), '--customers', '20000']);
  const { stdout, stderr } = await promisify(execFile)('unshare', [
    ...flags,
    'sh',
    '-c',
    `${script} || true`,
    disk,
    program!,
    ...args,
  ]);
  assert.match(stderr, /^headgate: there is no room left for [^\n]+\n/);
  assert.match(stdout, /^exit code 1\n/);
  assert.doesNotMatch(stdout, /csv|ndjson|partial/);
});

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  test(`${signal} in the middle leaves no files`, async () => {
    const path = join(folder.folder, `interrupted by ${signal}`);
    const running = runHeadgate(['sample', path, '--customers', '1000000'], process.env);
    const ended = running.then(
      () => assert.fail('it was not interrupted'),
      (error: { signal: string | null; stderr: string }) => error,
    );
    const partial = join(path, 'transactions.csv.partial');
    const isWriting = (): Promise<boolean> =>
      stat(partial).then(
        ({ size }) => size > 0,
        () => false,
      );
    await Promise.race([waitUntil('the first transactions are written', isWriting), ended]);
    assert.ok(!existsSync(join(path, 'shops.csv')), 'a file has its final name before all are complete');
    running.child.kill(signal);
    const { signal: endedBy, stderr } = await ended;
    assert.equal(endedBy, signal);
    assert.equal(stderr, 'headgate: stopped before the sample was complete; the partial files are deleted\n');
    assert.ok(!existsSync(path));
  });
}
