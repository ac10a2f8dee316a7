import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { storedInteraction } from '@headgate/catalogue/record-types.ts';
import { settingDescriptions } from '../settings.ts';
import { openStore } from '../store/open-store.ts';
import { openKeys } from '../store/test-keys.ts';
import { commands } from './commands.ts';
import { fieldsOf } from './load/file-types.ts';
import { options } from './options.ts';
import { runHeadgate } from './run.ts';

const NOW_MS = Date.parse('2026-03-01T00:00:00Z');

interface Ran {
  readonly exitCode: number;
  readonly out: string;
  readonly err: string;
}

type Headgate = (...args: string[]) => Promise<Ran>;

async function runIn(env: Record<string, string>, args: string[], nowMs = NOW_MS): Promise<Ran> {
  const out: string[] = [];
  const err: string[] = [];
  const exitCode = await runHeadgate(args, {
    out: (line) => out.push(line),
    err: (line) => err.push(line),
    isTerminal: false,
    rewrite: (text) => err.push(text),
    env,
    nowMs: () => nowMs,
  });
  return { exitCode, out: out.join('\n'), err: err.join('\n') };
}

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-cli-'));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

/** A new database with the organisation "acme". */
async function onNewDatabase(t: TestContext): Promise<Headgate & { readonly orgId: string }> {
  const database = join(await temporaryFolder(t), 'headgate.db');
  const orgId = randomUUID();
  const keys = await openKeys(database);
  await keys.createOrganisation('acme', orgId, NOW_MS);
  await keys.close();
  const headgate: Headgate = (...args) => runIn({ HEADGATE_DATABASE: database }, args);
  return Object.assign(headgate, { orgId });
}

const withoutDatabase: Headgate = (...args) => runIn({ HEADGATE_DATABASE: '/dev/null/x.db' }, args);

async function json(ran: Promise<Ran>): Promise<unknown> {
  const { exitCode, out, err } = await ran;
  assert.deepEqual([exitCode, err], [0, '']);
  return JSON.parse(out);
}

interface Issued {
  readonly key_id: string;
  readonly key: string;
  readonly org_id: string;
  readonly expires_at: string | null;
}

test('the help lists every command, and the help of a command lists every option of it', async () => {
  const { exitCode, out } = await withoutDatabase();
  assert.equal(exitCode, 0);
  assert.equal((await withoutDatabase('--help')).out, out);
  assert.equal((await withoutDatabase('help')).out, out);
  // A long summary is wrapped.
  const unwrapped = out.replace(/\s+/g, ' ');
  for (const command of commands) {
    assert.ok(out.includes(command.words.join(' ')) && unwrapped.includes(command.summary));
    const help = await withoutDatabase(...command.words, '--help');
    assert.equal(help.exitCode, 0);
    assert.deepEqual(await withoutDatabase('help', ...command.words), help);
    for (const name of [...(command.requiredOptions ?? []), ...command.options]) {
      assert.ok(help.out.includes(`--${name}`), `--${name} is not in the help of ${command.words.join(' ')}`);
    }
    for (const example of command.examples) assert.ok(help.out.includes(example));
    assert.ok(help.out.split('\n').every((line) => line.length <= 100));
  }
});

test('the help of export names the fields of interactions that load does not take', async () => {
  const omitted = Object.keys(storedInteraction).filter(
    (name) => !Object.hasOwn(fieldsOf('user-interactions'), name),
  );
  const { out } = await withoutDatabase('export', '--help');
  assert.ok(out.replace(/\s+/g, ' ').includes(`interactions omit ${omitted.join(' and ')},`), out);
});

test('every declared option belongs to a command, and every option of a command is declared', () => {
  const taken = new Set(
    commands.flatMap(({ requiredOptions = [], options: others }) => [...requiredOptions, ...others]),
  );
  assert.deepEqual([...taken, 'help', 'version'].sort(), Object.keys(options).sort());
});

test('every example in the help is accepted as a command line', async () => {
  for (const example of commands.flatMap((command) => command.examples)) {
    const [, ...args] = [...example.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare!);
    // A server may be running on this machine during the tests, and a sample needs no database.
    if (args[0] === 'serve' || args[0] === 'ready' || args[0] === 'sample') continue;
    const { exitCode, err } = await withoutDatabase(...args);
    // Without a key, commands that call a server are refused as wrong usage.
    const expected = ['load', 'export', 'changes', 'uploads', 'sql', 'segments', 'report'].includes(args[0]!)
      ? 2
      : 1;
    assert.deepEqual([exitCode, /^headgate: [^\n]+$/.test(err)], [expected, true], `${example}: ${err}`);
  }
});

test('the help of serve lists every server setting, and that of load and export all others', async () => {
  const [ofServe, ofLoad, ofExport] = await Promise.all(
    ['serve', 'load', 'export'].map((command) => withoutDatabase(command, '--help')),
  );
  assert.deepEqual(
    settingDescriptions.filter(({ env }) => ofLoad!.out.includes(env) !== ofExport!.out.includes(env)),
    [],
  );
  for (const { env, flag, isOfServer } of settingDescriptions) {
    const { out } = isOfServer ? ofServe! : ofLoad!;
    assert.ok(out.includes(env), env);
    if (flag !== null) assert.ok(out.includes(`--${flag}`), flag);
  }
});

test('a group of commands has its own help', async () => {
  for (const args of [
    ['keys', '--help'],
    ['help', 'keys'],
  ]) {
    const { exitCode, out } = await withoutDatabase(...args);
    assert.equal(exitCode, 0);
    assert.match(out, /keys rotate KEY_ID/);
    assert.doesNotMatch(out, /orgs create/);
  }
});

test('wrong usage is refused with one sentence that names the mistake, exit code 2', async () => {
  const wrong: [args: string[], sentence: RegExp][] = [
    [['srve'], /no command "srve"; did you mean serve\?/],
    [['xyzzy'], /no command "xyzzy"; there is serve, [a-z, ]+, migrate, help$/],
    [['keys'], /keys needs one of issue, list, rotate, revoke/],
    [['keys', 'isue'], /no command "isue"; did you mean issue\?/],
    [['help', 'kyes'], /did you mean keys\?/],
    [['keys', 'issue', '--og', 'acme'], /no option --og; did you mean --org\?/],
    [['keys', 'issue', '-x'], /no option -x/],
    [['keys', 'issue'], /keys issue needs --org NAME\|ID: headgate keys issue/],
    [['keys', 'issue', '--org'], /--org needs a value/],
    [['keys', 'issue', '--org', '--json'], /--org needs a value/],
    [['keys', 'issue', '--org', 'a', '--org', 'b'], /--org is given more than once/],
    [['keys', 'issue', '--org', 'a', '--json=yes'], /--json takes no value/],
    [['keys', 'issue', '--org', 'a', '--scope', 'data:wirte'], /did you mean data:write\?/],
    [['keys', 'issue', '--org', 'a', '--expires', '90'], /--expires must be .* not "90"/],
    [['keys', 'issue', '--org', 'a', '--expires', '0s'], /--expires must be longer/],
    [['keys', 'issue', '--org', 'a', '--expires', '36501d'], /at most 36500d/],
    [['keys', 'issue', '--org', 'a', '--name', ''], /--name must not be empty/],
    [['keys', 'issue', '--org', 'a', '--name', 'a\u200b'], /--name must not contain U\+200B/],
    [['keys', 'issue', '--org', 'a', '--overlap', '1h'], /keys issue takes no --overlap/],
    [['keys', 'rotate'], /keys rotate needs KEY_ID/],
    [['keys', 'rotate', 'abc'], /KEY_ID must be 12 lower-case hexadecimal digits.*"abc"/],
    [['keys', 'rotate', '0123456789ab', '--overlap', 'long'], /--overlap must be/],
    [['orgs', 'list', 'acme'], /does not take the argument "acme"/],
    [['orgs', 'create', 'a', '--port', '1'], /orgs create takes no --port/],
    [['serve', '--port', 'x'], /--port must be .*"x"/],
    [['serve', '--host', '0.0.0.0'], /no HTTPS/],
    [['orgs', 'list', '--database', 'mysql://x'], /--database must be/],
    [['orgs', 'list', '--database', ':memory:'], /--database must be/],
  ];
  for (const [args, sentence] of wrong) {
    const { exitCode, out, err } = await withoutDatabase(...args);
    assert.deepEqual([exitCode, out], [2, ''], `${args.join(' ')}: ${err}`);
    assert.match(err, sentence);
    assert.match(err, /^headgate: [^\n]+$/);
  }
});

test('a malformed key that is given instead of a key id is not printed', async () => {
  const { err } = await withoutDatabase('keys', 'revoke', `hg_0123456789ab_${'5'.repeat(47)}`);
  assert.doesNotMatch(err, /5555/);
});

test('a database that cannot be used is reported with one sentence, exit code 1', async (t) => {
  const path = join(await temporaryFolder(t), 'notes.txt');
  await writeFile(path, 'these are notes, and no database at all\n'.repeat(100));
  for (const args of [
    ['orgs', 'list'],
    ['keys', 'list', '--org', 'a'],
    ['serve', '--port', '0'],
  ]) {
    const { exitCode, out, err } = await runIn(
      { HEADGATE_DATABASE: path, HEADGATE_LOG_LEVEL: 'silent' },
      args,
    );
    assert.deepEqual([exitCode, out], [1, ''], args.join(' '));
    assert.match(err, /^headgate: [^\n]*notes\.txt[^\n]*$/);
  }
});

test('a server with an invalid setting does not start, exit code 2', async () => {
  for (const wrong of [{ HEADGATE_HOST: '0.0.0.0' }, { HEADGATE_MAX_BODY: 'big' }]) {
    const { exitCode, out, err } = await runIn(wrong, ['serve']);
    assert.deepEqual([exitCode, out], [2, '']);
    assert.match(err, new RegExp(`^headgate: ${Object.keys(wrong)[0]}[^\n]+$`));
  }
});

const withoutProc = existsSync('/proc/self') ? false : 'there is no /proc here';
test('a database whose folder cannot be created is reported with one sentence, exit code 1', {
  skip: withoutProc,
}, async () => {
  for (const path of ['/proc/x/y.db', '/proc/x/deeper/y.db']) {
    const env = { HEADGATE_DATABASE: path, HEADGATE_LOG_LEVEL: 'silent' };
    const { exitCode, out, err } = await runIn(env, ['serve', '--port', '0']);
    assert.deepEqual([exitCode, out], [1, '']);
    assert.match(err, new RegExp(`^headgate: the database ${path} cannot be made [^\n]*ENOENT[^\n]*$`));
  }
});

test('wrong TLS files are reported with one sentence before the server starts, exit code 2', async (t) => {
  const folder = await temporaryFolder(t);
  const [database, text] = [join(folder, 'headgate.db'), join(folder, 'text.pem')];
  await writeFile(text, 'no certificate');
  for (const wrong of [join(folder, 'missing.pem'), folder, text]) {
    const env = { HEADGATE_DATABASE: database, HEADGATE_TLS_KEY: text, HEADGATE_TLS_CERT: wrong };
    const { exitCode, out, err } = await runIn(env, ['serve', '--port', '0']);
    assert.deepEqual([exitCode, out], [2, ''], err);
    assert.match(err, /^headgate: HEADGATE_TLS_CERT names [^\n]+$/);
    assert.ok(err.includes(wrong), err);
  }
  assert.equal(existsSync(database), false);
});

test('only "orgs create" creates a missing database; other commands refuse it', async (t) => {
  const path = join(await temporaryFolder(t), 'mistyped', 'headgate.db');
  const env = { HEADGATE_DATABASE: path };
  const commands = [
    ['orgs', 'list'],
    ['keys', 'issue', '--org', 'acme'],
    ['keys', 'list', '--org', 'acme'],
    ['keys', 'rotate', '000000000000'],
    ['keys', 'revoke', '000000000000'],
    ['migrate'],
  ];
  for (const args of commands) {
    const { exitCode, err } = await runIn(env, args);
    assert.equal(exitCode, 1, args.join(' '));
    assert.match(err, /there is no database ".*mistyped.*".*headgate orgs create NAME/, args.join(' '));
    assert.equal(existsSync(path), false, args.join(' '));
  }
  assert.equal((await runIn(env, ['orgs', 'create', 'acme'])).exitCode, 0);
  assert.equal((await runIn(env, ['orgs', 'list'])).exitCode, 0);
});

test('--database is accepted before and after the command, and overrides the environment', async (t) => {
  const folder = await temporaryFolder(t);
  const env = { HEADGATE_DATABASE: '/dev/null/x.db' };
  const database = `sqlite:${join(folder, 'a.db')}`;
  assert.equal((await runIn(env, ['--database', database, 'orgs', 'create', 'acme'])).exitCode, 0);
  const listed = await json(runIn(env, ['orgs', 'list', '--json', `--database=${database}`]));
  assert.equal((listed as unknown[]).length, 1);
});

test('an organisation is created and listed, as text and as JSON', async (t) => {
  const path = join(await temporaryFolder(t), 'headgate.db');
  const headgate: Headgate = (...args) => runIn({ HEADGATE_DATABASE: path }, args);
  // The same state as after starting and stopping a server.
  await (await openStore(path)).close();
  assert.match((await headgate('orgs', 'list')).out, /no organisation yet/);
  assert.deepEqual(await json(headgate('orgs', 'list', '--json')), []);
  const made = (await json(headgate('orgs', 'create', 'Zebra & Sons', '--json'))) as { org_id: string };
  assert.deepEqual(made, { org_id: made.org_id, name: 'Zebra & Sons' });
  assert.match(made.org_id, /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/);
  const { out } = await headgate('orgs', 'create', 'acme');
  assert.match(out, /Made the organisation "acme" with the id .*\n.*headgate keys issue --org/);
  const listed = (await json(headgate('orgs', 'list', '--json'))) as { name: string }[];
  assert.deepEqual(
    listed.map(({ name }) => name),
    ['Zebra & Sons', 'acme'],
  );
  assert.deepEqual(listed[0], { ...made, created_at: '2026-03-01T00:00:00.000Z' });
  const [heading, ...rows] = (await headgate('orgs', 'list')).out.split('\n');
  assert.match(heading!, /^ID +CREATED +NAME$/);
  assert.equal(rows[0], `${made.org_id}  2026-03-01T00:00:00.000Z  Zebra & Sons`);

  const again = await headgate('orgs', 'create', 'acme', '--json');
  assert.deepEqual(again, { exitCode: 1, out: '', err: 'headgate: there is already an organisation "acme"' });
  assert.equal((await headgate('orgs', 'create', ' ')).exitCode, 2);
});

test('a key is issued with exactly the documented fields, and listed without its secret', async (t) => {
  const headgate = await onNewDatabase(t);
  const org_id = headgate.orgId;
  assert.match((await headgate('keys', 'list', '--org', 'acme')).out, /"acme" has no key yet/);

  const plain = (await json(headgate('keys', 'issue', '--org', 'acme', '--json'))) as Issued;
  assert.match(plain.key, new RegExp(`^hg_${plain.key_id}_[0-9a-f]{48}$`));
  assert.deepEqual(plain, {
    key_id: plain.key_id,
    key: plain.key,
    org_id,
    name: null,
    scopes: [
      'data:write',
      'data:read',
      'interactions:write',
      'interactions:read',
      'analytics:read',
      'analytics:write',
    ],
    expires_at: null,
  });
  const narrow = (await json(
    headgate(
      ...['keys', 'issue', '--org', org_id, '--name', 'nightly', '--expires', '90d', '--json'],
      ...['--scope', 'data:write:shops', '--scope', 'interactions:read'],
    ),
  )) as Issued;
  assert.deepEqual(narrow, {
    key_id: narrow.key_id,
    key: narrow.key,
    org_id,
    name: 'nightly',
    scopes: ['data:write:shops', 'interactions:read'],
    expires_at: '2026-05-30T00:00:00.000Z',
  });

  const listed = await headgate('keys', 'list', '--org', 'acme', '--json');
  for (const { key } of [plain, narrow]) assert.ok(!listed.out.includes(key.slice(16)));
  assert.doesNotMatch(listed.out, /hash/i);
  const rows = JSON.parse(listed.out) as Issued[];
  assert.deepEqual(
    rows.find(({ key_id }) => key_id === narrow.key_id),
    {
      key_id: narrow.key_id,
      org_id,
      name: 'nightly',
      scopes: ['data:write:shops', 'interactions:read'],
      created_at: '2026-03-01T00:00:00.000Z',
      expires_at: '2026-05-30T00:00:00.000Z',
      revoked_at: null,
      last_used_at: null,
      replaced_by: null,
      status: 'active',
    },
  );
  assert.equal(rows.length, 2);
});

test('as text, the key is alone on its line, with a note that it will not be shown again', async (t) => {
  const headgate = await onNewDatabase(t);
  const { exitCode, out } = await headgate('keys', 'issue', '--org', 'acme');
  assert.equal(exitCode, 0);
  assert.match(out, /^ {2}hg_[0-9a-f]{12}_[0-9a-f]{48}$/m);
  assert.match(out, /it will not be shown again/);
  const secret = /hg_[0-9a-f]{12}_([0-9a-f]{48})/.exec(out)![1]!;
  const listed = await headgate('keys', 'list', '--org', 'acme');
  assert.match(
    listed.out,
    /^KEY ID +STATUS +NAME +CREATED +EXPIRES +LAST USED +SCOPES\n[0-9a-f]{12} +active /,
  );
  assert.ok(!listed.out.includes(secret));
});

test('an organisation that does not exist is reported with a similar name, exit code 1', async (t) => {
  const headgate = await onNewDatabase(t);
  for (const command of ['issue', 'list']) {
    const { exitCode, out, err } = await headgate('keys', command, '--org', 'acne', '--json');
    assert.deepEqual([exitCode, out], [1, '']);
    assert.equal(err, 'headgate: there is no organisation "acne"; did you mean "acme"?');
  }
});

test('a key is rotated with an overlap of one day by default', async (t) => {
  const headgate = await onNewDatabase(t);
  const old = (await json(headgate('keys', 'issue', '--org', 'acme', '--name', 'n', '--json'))) as Issued;
  const next = (await json(headgate('keys', 'rotate', old.key_id, '--json'))) as Issued;
  assert.notEqual(next.key_id, old.key_id);
  assert.deepEqual(next, { ...old, key_id: next.key_id, key: next.key });
  const people = await headgate('keys', 'rotate', next.key, '--overlap', '0s');
  assert.equal(people.exitCode, 0, 'the whole key is accepted instead of its id');
  assert.match(people.out, /it will not be shown again[\s\S]*The old key has ended/);

  const rows = (await json(headgate('keys', 'list', '--org', 'acme', '--json'))) as (Issued & {
    status: string;
    replaced_by: string | null;
  })[];
  const byId = new Map(rows.map((row) => [row.key_id, [row.expires_at, row.status, row.replaced_by]]));
  const last = rows.find(({ key_id }) => key_id !== old.key_id && key_id !== next.key_id)!;
  assert.deepEqual(byId.get(old.key_id), ['2026-03-02T00:00:00.000Z', 'rotated', next.key_id]);
  assert.deepEqual(byId.get(next.key_id), ['2026-03-01T00:00:00.000Z', 'expired', last.key_id]);
  assert.deepEqual(byId.get(last.key_id), [null, 'active', null]);
  assert.equal(rows.length, 3);
  const listed = await headgate('keys', 'list', '--org', 'acme');
  assert.match(listed.out, new RegExp(`^${old.key_id} +rotated `, 'm'));
});

test('a rotated key is not rotated again, and the error names its successor, exit code 1', async (t) => {
  const headgate = await onNewDatabase(t);
  const old = (await json(
    headgate('keys', 'issue', '--org', 'acme', '--expires', '90d', '--json'),
  )) as Issued;
  const next = (await json(headgate('keys', 'rotate', old.key_id, '--json'))) as Issued;
  assert.equal(next.expires_at, old.expires_at);
  assert.deepEqual(await headgate('keys', 'rotate', old.key_id, '--json'), {
    exitCode: 1,
    out: '',
    err:
      `headgate: the key ${old.key_id} was already rotated; rotate its successor ${next.key_id} instead, ` +
      `or end the old key at once: headgate keys revoke ${old.key_id}`,
  });
  const again = (await json(headgate('keys', 'rotate', next.key_id, '--json'))) as Issued;
  assert.equal(again.expires_at, old.expires_at);
});

test('an expired key is not rotated, exit code 1', async (t) => {
  const env = { HEADGATE_DATABASE: join(await temporaryFolder(t), 'headgate.db') };
  await runIn(env, ['orgs', 'create', 'acme']);
  const issue = ['keys', 'issue', '--org', 'acme', '--expires', '1s', '--json'];
  const { key_id } = (await json(runIn(env, issue))) as Issued;
  const { exitCode, err } = await runIn(env, ['keys', 'rotate', key_id], NOW_MS + 1000);
  assert.equal(exitCode, 1);
  assert.match(err, /is expired, so it cannot be rotated; issue a new one/);
});

test('revoking a key a second time reports when it was revoked', async (t) => {
  const headgate = await onNewDatabase(t);
  const { key_id, org_id } = (await json(headgate('keys', 'issue', '--org', 'acme', '--json'))) as Issued;
  assert.match((await headgate('keys', 'revoke', key_id)).out, /^Revoked the key [0-9a-f]{12}\. Servers/);
  assert.match((await headgate('keys', 'revoke', key_id)).out, /was already revoked, at 2026-03-01T/);
  assert.deepEqual(await json(headgate('keys', 'revoke', key_id, '--json')), {
    key_id,
    org_id,
    revoked_at: '2026-03-01T00:00:00.000Z',
  });
  const [row] = (await json(headgate('keys', 'list', '--org', 'acme', '--json'))) as { status: string }[];
  assert.equal(row?.status, 'revoked');
  for (const command of ['revoke', 'rotate']) {
    const { exitCode, err } = await headgate('keys', command, '000000000000');
    assert.equal(exitCode, 1);
    assert.match(err, /there is no key 000000000000/);
  }
  assert.match((await headgate('keys', 'rotate', key_id)).err, /is revoked, so it cannot be rotated/);
});
