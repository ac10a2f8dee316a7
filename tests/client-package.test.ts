// Tests the client as users get it. The package is built, installed into an empty project and type-checked there. Then it
// and the examples of its README run against a real server, with every Node version that is installed.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { testDatabases } from '../server/store/test-databases.ts';
import { examplesOf } from './harness/docs-page.ts';
import { runningHeadgate } from './harness/running-headgate.ts';

const run = promisify(execFile);
const root = new URL('..', import.meta.url).pathname;
const clientFolder = join(root, 'client');
const compiler = join(root, 'node_modules/typescript/bin/tsc');
const OLDEST_NODE_MAJOR = 20;

/** A program of a browser project, without the types of Node. */
const consumer = `
import { HeadgateClient, type ProblemCode, type SentShop, uploadOrder } from '@headgate/client';

export async function upload(url: string, apiKey: string, shop_id: string): Promise<string> {
  const client = new HeadgateClient({ url, apiKey, retry: { attempts: 1 } });
  const shop: SentShop = { shop_id, name: 'Corner Books', region: 'GB' };
  const { counts, errors } = await client.upload(uploadOrder[1], [shop], { signal: new AbortController().signal });
  const codes: ProblemCode[] = errors.map(({ code }) => code);
  const read = await client.get('shops', shop_id);
  const isDeleted: boolean | null | undefined = read?.is_deleted;
  // @ts-expect-error: a shop has no amount.
  await client.upload('shops', [{ ...shop, amount: 1 } satisfies SentShop], { dryRun: true });
  // @ts-expect-error: there is no such type.
  const wrongType = (): unknown => client.list('shop');
  // @ts-expect-error: a transaction needs more than that.
  const tooLittle = (): unknown => client.upload('transactions', [{ transaction_id: shop_id }]);
  return JSON.stringify([counts.created + counts.unchanged, codes, read?.name, isDeleted, typeof wrongType, typeof tooLittle]);
}
`;
const consumerRuns = `
import { upload } from './consumer.js';
console.log(await upload(process.env.HEADGATE_URL!, process.env.HEADGATE_KEY!, '5a1c2f4e-77f7-4b0f-9d0a-3f2f4d0f3a10'));
`;

const strict = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: false,
  target: 'es2022',
};

/** Returns every Node in PATH, and the one that runs this test, each version once. */
async function nodesHere(): Promise<ReadonlyMap<string, string>> {
  const { stdout } = await run('sh', ['-c', 'which -a node || true']);
  const nodes = new Map<string, string>();
  for (const path of [process.execPath, ...stdout.split('\n').filter((line) => line !== '')]) {
    const version = (await run(path, ['--version'])).stdout.trim();
    if (Number(/\d+/.exec(version)?.[0]) >= OLDEST_NODE_MAJOR && !nodes.has(version))
      nodes.set(version, path);
  }
  return nodes;
}

describe('the packed client', () => {
  const running = runningHeadgate(testDatabases[0]!);
  let project: string;
  let env: NodeJS.ProcessEnv;

  before(async () => {
    project = await mkdtemp(join(tmpdir(), 'headgate-client-'));
    await run('npm', ['pack', '--pack-destination', project], { cwd: clientFolder });
    const packed = (await readdir(project)).find((name) => name.endsWith('.tgz'));
    await writeFile(join(project, 'package.json'), '{"name":"empty","private":true,"type":"module"}\n');
    await run('npm', ['install', '--offline', '--no-audit', '--no-fund', `./${packed}`], { cwd: project });
    const { key } = await running.headgate.newKey();
    env = { ...process.env, HEADGATE_URL: running.headgate.url, HEADGATE_KEY: key };
  });
  after(async () => {
    await rm(project, { recursive: true, force: true });
    await rm(join(clientFolder, 'dist'), { recursive: true, force: true });
  });

  async function compile(options: object, ...files: string[]): Promise<void> {
    const config = { compilerOptions: { ...strict, ...options }, files };
    await writeFile(join(project, 'tsconfig.json'), JSON.stringify(config));
    await run(process.execPath, [compiler, '--project', project]).catch((error: { stdout: string }) => {
      assert.fail(`it does not compile:\n${error.stdout}`);
    });
  }

  /** Adds the types of Node, which a server project has. */
  async function linkNodeTypes(): Promise<void> {
    await mkdir(join(project, 'node_modules/@types'), { recursive: true });
    await symlink(join(root, 'node_modules/@types/node'), join(project, 'node_modules/@types/node'));
    await symlink(join(root, 'node_modules/undici-types'), join(project, 'node_modules/undici-types'));
  }

  test('contains the files that it needs and no others', async () => {
    const installed = join(project, 'node_modules/@headgate/client');
    assert.deepEqual((await readdir(installed)).sort(), ['LICENSE', 'README.md', 'dist', 'package.json']);
    const built = await readdir(join(installed, 'dist'));
    assert.ok(
      built.every((name) => /\.(?:js|d\.ts)$/.test(name)),
      built.join(', '),
    );
    const { dependencies } = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'));
    assert.equal(dependencies, undefined);
  });

  test('type-checks in a browser project and in one for Node, and runs on every Node version', async (t) => {
    await writeFile(join(project, 'consumer.ts'), consumer);
    const browser = {
      module: 'esnext',
      moduleResolution: 'bundler',
      lib: ['es2022', 'dom'],
      types: [],
      noEmit: true,
    };
    await compile(browser, 'consumer.ts');

    await linkNodeTypes();
    await writeFile(join(project, 'run.ts'), consumerRuns);
    const examples = examplesOf(await readFile(join(clientFolder, 'README.md'), 'utf8'));
    const code = examples.filter(({ language }) => language === 'ts').map(({ text }) => text);
    await writeFile(join(project, 'readme.ts'), code.join('\n'));
    const node = { module: 'nodenext', lib: ['es2022'], types: ['node'], outDir: 'built' };
    await compile(node, 'consumer.ts', 'run.ts', 'readme.ts');

    const nodes = await nodesHere();
    t.diagnostic([...nodes.keys()].join(', '));
    for (const [version, path] of nodes) {
      const { stdout } = await run(path, ['built/run.js'], { cwd: project, env });
      assert.deepEqual(JSON.parse(stdout), [1, [], 'Corner Books', false, 'function', 'function'], version);

      const shown = (await run(path, ['built/readme.js'], { cwd: project, env })).stdout;
      assert.match(shown, /record 1: region must be a two-letter country code, not "Britain"/, version);
      assert.match(shown, /from 5000: 5000 created/);
      assert.match(shown, /0 amount must be a number greater than 0, not 0/);
      assert.match(shown, /10000 of 10000 answered/);
      assert.match(shown, /name: 'Corner Books'/);
    }
  });
});
