// The package `headgate` as its users get it: packed, installed into an empty project, and run from there.

import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import workspaceFacts from '../package.json' with { type: 'json' };
import packageJson from '../server/package.json' with { type: 'json' };
import { type Api, apiOf } from './harness/api.ts';
import { npmEnvironment, runIn } from './harness/npm.ts';
import { idOf, leastRecord } from './harness/records.ts';
import { exitCodeOf, waitUntil } from './harness/waiting.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const oldest = packageJson.engines.node.replace('>=', '');
/** Where npm installs the executable in a project. */
const executable = 'node_modules/.bin/headgate';
const MOST_BYTES = 600_000;
const MOST_UNPACKED_BYTES = 3_000_000;

interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

describe('the package', () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-package-'));
  const project = join(folder, 'project');
  let packed: Packed;
  before(async () => {
    const args = ['pack', '--workspace=headgate', '--json', '--silent', `--pack-destination=${folder}`];
    [packed] = JSON.parse(await runIn(root, 'npm', args)) as [Packed];
    mkdirSync(project);
    writeFileSync(join(project, 'package.json'), '{"private": true}');
    await runIn(project, 'npm', ['install', join(folder, packed.filename)]);
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const headgate = (...args: string[]): Promise<string> => runIn(project, join(project, executable), args);

  test('contains the files that it needs to run, and no others', () => {
    const paths = packed.files.map(({ path }) => path);
    const wanted = /^(LICENSE|README\.md|package\.json|bin\/headgate\.js|dist\/.+\.(js|json|css|svg))$/;
    const ofTests = /\.test\.|\/test-|\/testing\//;
    assert.deepEqual(
      paths.filter((path) => !wanted.test(path) || ofTests.test(path)),
      [],
    );
    for (const thread of ['writer', 'reader', 'checkpointer', 'backup']) {
      assert.ok(paths.includes(`dist/server/store/sqlite/${thread}-thread.js`), thread);
    }
    assert.ok(packed.size < MOST_BYTES, `it has ${packed.size} bytes`);
    assert.ok(packed.unpackedSize < MOST_UNPACKED_BYTES, `unpacked, it has ${packed.unpackedSize} bytes`);
  });

  test('names no file that only a checkout has', () => {
    const sourceName = /(?:from|import|import\(|new URL\()\s*['"`][^'"`\n]*\.ts['"`]/;
    for (const { path } of packed.files.filter(({ path }) => path.endsWith('.js'))) {
      const code = readFileSync(join(project, 'node_modules/headgate', path), 'utf8');
      const named = path === 'bin/headgate.js' ? null : sourceName.exec(code)?.[0];
      assert.equal(named ?? null, null, path);
      assert.doesNotMatch(code, /^(import|export)\b[^'"();]*from ['"]@headgate\//m, path);
    }
  });

  test('prints its version and its help', async () => {
    const byNpx = await runIn(project, 'npx', ['--no', '--', 'headgate', '--version']);
    assert.equal(byNpx, `${packageJson.version}\n`);
    assert.match(await headgate('serve', '--help'), /HEADGATE_DATABASE/);
  });

  test('serves uploads, interactions and the reference pages, and stops cleanly', async (t) => {
    const { url, key, process: server } = await serve(project);
    t.after(() => server.kill('SIGKILL'));
    const api: Api = apiOf(url, key);
    const shop = leastRecord('shops');
    const uploaded = await api.upload('shops', [shop]);
    assert.equal(uploaded.status, 200, uploaded.text);
    const recorded = await api.record({
      interaction_type: 'SHARE',
      item_type: 'SHOP',
      item_id: idOf('shops', shop),
      event_timestamp: 1_700_000_000,
    });
    assert.equal(recorded.status, 201, recorded.text);
    assert.equal((await api.read('shops', idOf('shops', shop))).body.name, shop.name);
    for (const path of ['/docs', '/docs/reference.css', '/docs/reference.js', '/openapi.json', '/readyz']) {
      const response = await fetch(url + path);
      await response.arrayBuffer();
      assert.equal(response.status, 200, path);
    }

    const keys = JSON.parse(await headgate('keys', 'list', '--org', 'demo', '--json')) as unknown[];
    assert.equal(keys.length, 1);
    const { records } = JSON.parse(await headgate('backup', 'backup.db', '--json')) as { records: number };
    assert.equal(records, 1);
    assert.equal(await headgate('ready', '--port', new URL(url).port), 'ready\n');
    server.kill('SIGTERM');
    assert.equal(await exitCodeOf(server), 0);
    // The last step of a clean stop is to move the log into the database.
    assert.ok(!existsSync(join(project, 'data/headgate.db-wal')));
  });

  test('reports a Node version that is too old', async (t) => {
    const old = await oldNode();
    if (old === null) return t.skip('this machine has no Node that is too old');
    const launcher = join(project, 'node_modules/headgate/bin/headgate.js');
    await assert.rejects(promisify(execFile)(old.path, [launcher, 'serve']), {
      code: 2,
      stdout: '',
      stderr: `headgate: Node ${old.version} is too old: Headgate needs Node ${oldest} or newer\n`,
    });
  });
});

test('in a checkout, a Node that is too old runs the installed one, and passes on its signals', async (t) => {
  const old = await oldNode();
  if (old === null) return t.skip('this machine has no Node that is too old');
  const launcher = join(root, 'server/bin/headgate.js');
  assert.match((await promisify(execFile)(old.path, [launcher, '--version'])).stdout, /^\d+\.\d+\.\d+\n$/);
  await assert.rejects(promisify(execFile)(old.path, [launcher, 'xyzzy']), { code: 2 });

  const folder = mkdtempSync(join(tmpdir(), 'headgate-launcher-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const env = {
    ...process.env,
    HEADGATE_DATABASE: join(folder, 'headgate.db'),
    HEADGATE_LOG_LEVEL: 'silent',
  };
  const server = spawn(old.path, [launcher, 'serve', '--port', '0'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => server.kill('SIGKILL'));
  await once(server.stdout, 'data');
  server.kill('SIGTERM');
  assert.deepEqual(await once(server, 'exit'), [0, null]);
});

test('the oldest supported Node is the one that runs the tests, and is documented', () => {
  assert.match(workspaceFacts.devDependencies.node, new RegExp(`^${RegExp.escape(oldest)}\\.\\d+$`));
  for (const page of ['server/README.md', 'docs/production.md', 'docs/quick-start.md']) {
    const named = readFileSync(join(root, page), 'utf8').match(/\bNode \d+\.\d+ or newer/g);
    assert.deepEqual(named, [`Node ${oldest} or newer`], page);
  }
});

test('the launcher prefers sources to the files built from them', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-launcher-'));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const path of ['bin', 'cli', 'dist/server/cli']) mkdirSync(join(folder, path), { recursive: true });
  for (const path of ['bin/headgate.js', 'package.json']) {
    copyFileSync(join(root, 'server', path), join(folder, path));
  }
  writeFileSync(join(folder, 'cli/headgate.ts'), "console.log('source' satisfies string)");
  writeFileSync(join(folder, 'dist/server/cli/headgate.js'), "console.log('built')");
  const run = (): Promise<string> => runIn(folder, process.execPath, ['bin/headgate.js']);
  assert.equal(await run(), 'source\n');
  rmSync(join(folder, 'cli'), { recursive: true });
  assert.equal(await run(), 'built\n');
});

test('the launcher accepts the oldest Node that the package names, and none older', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-launcher-'));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const path of ['bin', 'cli']) mkdirSync(join(folder, path));
  copyFileSync(join(root, 'server/bin/headgate.js'), join(folder, 'bin/headgate.js'));
  writeFileSync(join(folder, 'cli/headgate.ts'), "console.log('started')");
  const run = (oldest: string): Promise<string> => {
    const facts = { type: 'module', engines: { node: `>=${oldest}` } };
    writeFileSync(join(folder, 'package.json'), JSON.stringify(facts));
    return runIn(folder, process.execPath, ['bin/headgate.js']);
  };
  const [major, minor] = process.versions.node.split('.').map(Number) as [number, number];
  for (const oldest of [`${major}.${minor}`, `${major}`, `${major - 1}.${minor + 1}`]) {
    assert.equal(await run(oldest), 'started\n');
  }
  for (const oldest of [`${major}.${minor + 1}`, `${major + 1}.0`]) {
    await assert.rejects(run(oldest), new RegExp(`needs Node ${oldest.replace('.', '\\.')} or newer`));
  }
});

interface Serving {
  readonly url: string;
  readonly key: string;
  readonly process: ChildProcess;
}

async function serve(project: string): Promise<Serving> {
  const child = spawn(join(project, executable), ['serve', '--port', '0'], {
    cwd: project,
    env: npmEnvironment,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk;
    });
  }
  const url = (): string | undefined => /^listening on (\S+)$/m.exec(output)?.[1];
  try {
    await waitUntil('the server answers', () => url() !== undefined || child.exitCode !== null);
    assert.ok(url() !== undefined, output);
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
  return { url: url()!, key: /^ {2}(hg_\S+)$/m.exec(output)![1]!, process: child };
}

/** Returns a Node of this machine that is too old for Headgate. */
async function oldNode(): Promise<{ path: string; version: string } | null> {
  for (const folder of process.env.PATH!.split(delimiter)) {
    const path = join(folder, 'node');
    const version = await promisify(execFile)(path, ['--version']).then(
      ({ stdout }) => stdout.trim().slice(1),
      () => null,
    );
    if (version !== null && Number(version.split('.')[0]) < 24) return { path, version };
  }
  return null;
}
