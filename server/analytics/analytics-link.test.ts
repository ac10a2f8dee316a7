import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openStore } from '../store/open-store.ts';
import { AnalyticsLink } from './analytics-link.ts';
import { socketPath } from './analytics-orders.ts';

async function newOrganisation(database: string) {
  const store = await openStore(database);
  const orgId = randomUUID();
  const { organisation } = (await store.createOrganisation(`organisation ${orgId}`, orgId, 1))!;
  await store.close();
  return { organisation, orgId };
}

async function ask(
  link: AnalyticsLink,
  of: Awaited<ReturnType<typeof newOrganisation>>,
  sql = 'SELECT 42',
): Promise<string> {
  const order = { ...of, sql, params: [], mostRows: null, timeoutMs: 20_000 };
  const answer = await link.sql(
    { ...order, format: 'csv', isForSpreadsheet: false },
    new AbortController().signal,
  );
  assert.ok(answer.kind === 'result', answer.kind === 'result' ? '' : answer.refusal.message);
  return text(answer.body);
}

test('the analytics process ends when it is idle, and is started again by the next query', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-link-'));
  const database = join(folder, 'headgate.db');
  const of = await newOrganisation(database);
  const { orgId } = of;
  const setup = { database, folder: join(folder, 'analytics'), memoryMb: 400, idleMs: 500 };
  const logged: string[] = [];
  const link = new AnalyticsLink(setup, (line) => logged.push(line));
  try {
    for (let time = 0; time < 2; time++) {
      assert.equal(await ask(link, of), '42\n42\n');
      for (const name of [setup.folder, socketPath(setup), join(setup.folder, `${orgId}.duckdb`)]) {
        assert.equal(statSync(name).mode & 0o077, 0, name);
      }
      const deadlineMs = performance.now() + 10_000;
      while (existsSync(socketPath(setup)) && performance.now() < deadlineMs) await sleep(50);
      assert.equal(existsSync(socketPath(setup)), false);
    }
    assert.deepEqual(logged, []);
  } finally {
    link.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

test('the folder may be deleted while the analytics process starts', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-link-'));
  const database = join(folder, 'headgate.db');
  const of = await newOrganisation(database);
  const setup = { database, folder: join(folder, 'analytics'), memoryMb: 400, idleMs: 60_000 };
  const link = new AnalyticsLink(setup, () => {});
  try {
    const asking = ask(link, of);
    // From here until it listens, the process opens the store.
    while (!existsSync(`${socketPath(setup)}.exports`)) await sleep(1);
    rmSync(setup.folder, { recursive: true });
    assert.equal(await asking, '42\n42\n');
  } finally {
    link.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
});

test('an analytics process that hangs is ended, and its queries run in the next one', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-link-'));
  const database = join(folder, 'headgate.db');
  const of = await newOrganisation(database);
  const setup = { database, folder: join(folder, 'analytics'), memoryMb: 400, idleMs: 60_000 };
  const logged: string[] = [];
  const link = new AnalyticsLink(setup, (line) => logged.push(line), 1000);
  let hanging: number | null = null;
  try {
    await ask(link, of);
    hanging = Number(execFileSync('pgrep', ['-P', String(process.pid), '-f', 'analytics-process']));
    process.kill(hanging, 'SIGSTOP');
    assert.deepEqual(await Promise.all([ask(link, of), ask(link, of)]), Array(2).fill('42\n42\n'));
    assert.equal(logged[0], 'the analytics process has not responded for 1 s');
  } finally {
    link.close();
    if (logged.length === 0 && hanging !== null) process.kill(hanging, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
});

test('several organisations can write to the disk at once what does not fit into memory', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-link-'));
  const database = join(folder, 'headgate.db');
  const organisations: Awaited<ReturnType<typeof newOrganisation>>[] = [];
  for (let n = 0; n < 3; n++) organisations.push(await newOrganisation(database));
  const setup = { database, folder: join(folder, 'analytics'), memoryMb: 240, idleMs: 60_000 };
  const link = new AnalyticsLink(setup, () => {});
  try {
    const sorted = (of: (typeof organisations)[0]): Promise<string> => {
      const numbers = `SELECT range AS n, md5(range::VARCHAR || '${of.orgId}') AS text FROM range(1000000)`;
      const sql = `SELECT count(*), count(*) FILTER (WHERE text = md5(n::VARCHAR || '${of.orgId}'))
        FROM (SELECT n, text, row_number() OVER (ORDER BY text) AS place FROM (${numbers})) WHERE place > 0`;
      return ask(link, of, sql);
    };
    for (const text of await Promise.all(organisations.map(sorted))) assert.match(text, /^1000000,1000000$/m);
  } finally {
    link.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
});
