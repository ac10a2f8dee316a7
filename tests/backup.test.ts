// `headgate backup` while a real server receives uploads without pause. Specific to SQLite.

import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { type Api, apiOf } from './harness/api.ts';
import { commandLine, type Headgate, newDatabaseFolder, startHeadgate } from './harness/headgate.ts';
import { mountNamespaceFlags, noMountNamespace } from './harness/mount-namespace.ts';
import { readAllInteractions, readAllRecords } from './harness/read-all.ts';
import { idOf, leastRecord, type TestRecord } from './harness/records.ts';
import { waitUntil } from './harness/waiting.ts';

/** Large enough for a backup of several steps, and for a check that lasts long enough to be observed. */
const UPLOADS_BEFORE = 30;
const RECORDS_PER_UPLOAD = 1000;
const CLIENTS = 2;
const NAME_CHARACTERS = 300;

describe('a backup while the server is under load', () => {
  let headgate: Headgate;
  let key: string;
  let api: Api;
  let folder: string;
  let removeFolder: () => Promise<void>;
  let load: Load;
  const shop = leastRecord('shops');
  let interaction: Record<string, unknown>;

  before(async () => {
    ({ folder, remove: removeFolder } = await newDatabaseFolder());
    mkdirSync(join(folder, 'backups'));
    headgate = await startHeadgate(`sqlite:${join(folder, 'headgate.db')}`);
    ({ key } = await headgate.newKey());
    api = apiOf(headgate.url, key);
    assert.equal((await api.upload('shops', [shop])).status, 200);
    const recorded = await api.record({
      interaction_type: 'SHARE',
      item_type: 'SHOP',
      item_id: idOf('shops', shop),
      event_timestamp: 1_700_000_000,
    });
    assert.equal(recorded.status, 201, recorded.text);
    interaction = recorded.body;
    load = new Load(api);
    await waitUntil('there is something to back up', () => load.acknowledged.size >= UPLOADS_BEFORE);
  });
  after(async () => {
    await load?.stop();
    await headgate?.kill();
    await removeFolder?.();
  });

  const start = (file: string): ChildProcess => {
    const [program, ...args] = commandLine(['backup', file, '--database', headgate.database]);
    return spawn(program!, args, { stdio: 'ignore' });
  };
  const inBackups = (): string[] => readdirSync(join(folder, 'backups')).sort();

  test('holds everything acknowledged before it, and every upload whole or not at all', async (t) => {
    const file = join(folder, 'backups', 'first.db');
    const acknowledgedBefore = new Set(load.acknowledged);
    const facts = await headgate.command<{ bytes: number; records: number }>('backup', file);
    const acknowledgedMeanwhile = load.acknowledged.size - acknowledgedBefore.size;
    await load.stop();
    assert.ok(acknowledgedMeanwhile > 0, 'nothing was uploaded while the backup was made');
    assert.deepEqual(inBackups(), ['first.db']);
    assert.deepEqual(damagesOf(file), []);
    assert.equal(facts.bytes, statSync(file).size);
    t.diagnostic(`${acknowledgedMeanwhile} uploads were acknowledged meanwhile; ${JSON.stringify(facts)}`);

    const restored = join(folder, 'restored.db');
    copyFileSync(file, restored);
    const second = await startHeadgate(`sqlite:${restored}`);
    try {
      const restoredApi = apiOf(second.url, key);
      const counts = new Map<string, number>();
      for (const { name } of await readAllRecords(restoredApi, 'courses')) {
        const upload = String(name).trimEnd();
        counts.set(upload, (counts.get(upload) ?? 0) + 1);
      }
      assert.equal(facts.records, counts.size * RECORDS_PER_UPLOAD + 1);
      for (const [upload, count] of counts)
        assert.equal(count, RECORDS_PER_UPLOAD, `half of upload ${upload}`);
      for (const upload of acknowledgedBefore) assert.ok(counts.has(upload), `upload ${upload} is missing`);
      for (let client = 0; client < CLIENTS; client++) {
        const numbers = [...counts.keys()].filter((upload) => upload.startsWith(`${client}/`));
        assert.deepEqual(new Set(numbers), new Set(numbers.map((_, number) => `${client}/${number}`)));
      }
      assert.deepEqual(await readAllInteractions(restoredApi), [interaction]);

      const again = await load.repeatFirst(restoredApi);
      assert.equal(again.status, 200, again.text);
      assert.equal(again.headers.get('idempotency-replayed'), 'true');
      const other = leastRecord('shops');
      assert.equal((await restoredApi.upload('shops', [other])).status, 200);
      assert.equal((await api.read('shops', idOf('shops', other))).status, 404);
    } finally {
      await second.kill();
    }
  });

  /** Ends a backup half-way with the signal. A backup that was faster than the signal is made again. */
  const stoppedHalfWay = async (file: string, signal: NodeJS.Signals, sign = 'copy.db'): Promise<void> => {
    const mark = join(`${file}.partial`, sign);
    for (let ending: unknown = null; ending !== signal; ) {
      rmSync(file, { force: true });
      const child = start(file);
      const exited = once(child, 'exit');
      await waitUntil('the backup is being written', () => existsSync(mark) || existsSync(file));
      child.kill(signal);
      const [exitCode, endedBy] = await exited;
      ending = endedBy ?? exitCode;
      assert.ok(ending === signal || ending === 0, `it ended with ${ending}`);
    }
  };

  test('leaves only its partial folder if it is killed, which the next backup replaces', async () => {
    const file = join(folder, 'backups', 'killed.db');
    const left = (): string[] => inBackups().filter((name) => name.startsWith('killed'));
    await stoppedHalfWay(file, 'SIGKILL');
    assert.deepEqual(left(), ['killed.db.partial']);
    await headgate.command('backup', file);
    assert.deepEqual(damagesOf(file), []);
    assert.deepEqual(left(), ['killed.db']);
  });

  for (const { signal, when, sign } of [
    { signal: 'SIGINT', when: 'while it copies', sign: 'copy.db' },
    { signal: 'SIGTERM', when: 'as soon as its partial folder exists', sign: '.' },
  ] as const) {
    test(`ends by ${signal} ${when} and leaves nothing behind`, async () => {
      const before = inBackups();
      await stoppedHalfWay(join(folder, 'backups', 'stopped.db'), signal, sign);
      assert.deepEqual(inBackups(), before);
    });
  }

  test('leaves the server ready and its database intact', async () => {
    assert.equal((await api.request('/readyz')).status, 200);
    assert.equal(await headgate.stop(), 0);
    assert.deepEqual(damagesOf(join(folder, 'headgate.db')), []);
  });
});

describe('a backup on a small disk', async () => {
  const flags = await mountNamespaceFlags();
  const skip = flags === null && noMountNamespace;
  const noRoom = /^headgate: there is no room for the backup in \S+: [^\n]+\n$/;

  /** Backs up to the disk and prints the exit code and the files on the disk. `script` runs there before. */
  const backUp = async (
    database: string,
    sizeBytes: number,
    script = ':',
  ): Promise<{ stdout: string; stderr: string }> => {
    const disk = join(database, '../disk');
    mkdirSync(disk);
    const onDisk = `mount -t tmpfs -o size="$1" headgate-test "$2" && cd "$2" && shift 2 && ${script} && "$@"; echo "exit code $?"; ls -A`;
    const backup = commandLine(['backup', join(disk, 'monday.db'), '--database', database]);
    const args = [...flags!, 'sh', '-c', onDisk, 'sh', String(sizeBytes), disk, ...backup];
    return promisify(execFile)('unshare', args);
  };
  const newDatabase = async (t: TestContext): Promise<string> => {
    const { folder, remove } = await newDatabaseFolder();
    t.after(remove);
    const database = join(folder, 'headgate.db');
    await runCommand(commandLine(['orgs', 'create', 'acme', '--database', database]));
    return database;
  };

  const cases = [
    { missing: 'a page', spareBytes: -4096, sentence: noRoom },
    // SQLite's journal does not fit beside the last page.
    {
      missing: 'the journal of SQLite',
      spareBytes: 0,
      sentence: /^headgate: the disk got full while \S+ was [^\n]+\n$/,
    },
  ];
  for (const { missing, spareBytes, sentence } of cases) {
    test(`is refused in one sentence, and leaves nothing, if ${missing} does not fit`, {
      skip,
    }, async (t) => {
      const database = await newDatabase(t);
      const { stdout, stderr } = await backUp(database, statSync(database).size + spareBytes);
      assert.match(stderr, sentence);
      assert.equal(stdout, 'exit code 1\n');
    });
  }

  test('needs room for the content of the log, too', { skip }, async (t) => {
    const database = await newDatabase(t);
    const { size } = statSync(database);
    const server = new DatabaseSync(database);
    t.after(() => server.close());
    server.exec(`PRAGMA wal_autocheckpoint = 0; CREATE TABLE logged AS SELECT randomblob(${size}) AS value`);
    assert.equal(statSync(database).size, size);
    const { stdout, stderr } = await backUp(database, size + size / 2);
    assert.match(stderr, noRoom);
    assert.equal(stdout, 'exit code 1\n');
  });

  test('can use the room that a killed backup occupied', { skip }, async (t) => {
    const database = await newDatabase(t);
    const { size } = statSync(database);
    const leftover = `mkdir monday.db.partial && head -c ${size} /dev/zero > monday.db.partial/copy.db`;
    const { stdout, stderr } = await backUp(database, size + size / 2, leftover);
    assert.equal(stderr, '');
    assert.match(stdout, /^Backed up [^\n]+\nexit code 0\nmonday\.db\n$/);
  });
});

test('a backup whose write fails half-way reports it in one sentence and leaves nothing', async (t) => {
  const { folder, remove } = await newDatabaseFolder();
  t.after(remove);
  const database = join(folder, 'headgate.db');
  await runCommand(commandLine(['orgs', 'create', 'acme', '--database', database]));
  const limitBlocks = Math.floor(statSync(database).size / 512 / 2);
  const backup = commandLine(['backup', join(folder, 'monday.db'), '--database', database]);
  const { stdout, stderr } = await promisify(execFile)('sh', [
    '-c',
    `ulimit -f ${limitBlocks}; "$@"; echo "exit code $?"`,
    'sh',
    ...backup,
  ]);
  assert.match(stderr, /^headgate: the backup could not be written to \S+monday\.db\.partial: [^\n]+\n$/);
  assert.equal(stdout, 'exit code 1\n');
  assert.deepEqual(readdirSync(folder), ['headgate.db']);
});

function runCommand([program, ...args]: readonly string[]): Promise<unknown> {
  return promisify(execFile)(program!, args);
}

function damagesOf(file: string): readonly unknown[] {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const findings = database.prepare('PRAGMA integrity_check').all();
    return findings.map((finding) => finding.integrity_check).filter((finding) => finding !== 'ok');
  } finally {
    database.close();
  }
}

/** Clients that each upload without pause. The name of a record has the client and the number of its upload. */
class Load {
  readonly acknowledged = new Set<string>();
  readonly #ended: Promise<unknown>;
  #isOver = false;
  #first: { records: readonly TestRecord[]; headers: Record<string, string> } | null = null;

  constructor(api: Api) {
    this.#ended = Promise.all(Array.from({ length: CLIENTS }, (_, client) => this.#run(api, client)));
    // `stop` throws the error. Until then it must not be an unhandled rejection.
    this.#ended.catch(() => {});
  }

  async #run(api: Api, client: number): Promise<void> {
    for (let number = 0; !this.#isOver; number++) {
      const upload = `${client}/${number}`;
      const records = Array.from({ length: RECORDS_PER_UPLOAD }, () =>
        leastRecord('courses', { name: upload.padEnd(NAME_CHARACTERS) }),
      );
      const headers = { 'Idempotency-Key': randomUUID() };
      this.#first ??= { records, headers };
      const { status, text } = await api.upload('courses', records, { headers });
      assert.equal(status, 200, text);
      this.acknowledged.add(upload);
    }
  }

  repeatFirst(api: Api): ReturnType<Api['upload']> {
    const { records, headers } = this.#first!;
    return api.upload('courses', records, { headers });
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#ended;
  }
}
