// Untrusted text that is printed to a terminal: names of files, messages of a server, contents of records.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { shellWord } from '../server/shell-word.ts';
import { testDatabases } from '../server/store/test-databases.ts';
import { apiOf } from './harness/api.ts';
import { commandLine } from './harness/headgate.ts';
import { type LoadFolder, loadFolder } from './harness/loading.ts';
import { leastRecord } from './harness/records.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { hasProgram } from './harness/waiting.ts';

/** Clears the screen, starts a forged line, and reverses the text direction. */
const NASTY = '\u001b[2J\u009b31m\rheadgate: all is well\u202e';
const SHOWN = '\\u001b[2J\\u009b31m\\u000dheadgate: all is well\\u202e';
// biome-ignore lint/suspicious/noControlCharactersInRegex: none may be there
const unprintable = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/;

const withoutScript = (await hasProgram('script')) ? false : 'this machine has no script';

async function folderFor(t: TestContext, url: string, key: string): Promise<LoadFolder> {
  return loadFolder(t, { HEADGATE_URL: url, HEADGATE_KEY: key });
}

describe('control characters do not reach the terminal', () => {
  const running = runningHeadgate(testDatabases[0]!);

  test('in the names of files, and in the problems that a server reports', async (t) => {
    const { key } = await running.headgate.newKey();
    const folder = await folderFor(t, running.headgate.url, key);
    const name = `tags.${NASTY}\n.csv`;
    await folder.write(name, `tag_id,name\n"x${NASTY}",a\n`);
    const { exitCode, out, err } = await folder.run('load', name);
    assert.equal(exitCode, 1, err);
    assert.ok(out.includes(`${SHOWN}\\u000a.csv:2`), out);
    assert.ok(err.includes(SHOWN), err);
    assert.doesNotMatch(out + err, unprintable);
    const missing = await folder.run('load', `${NASTY}.csv`);
    assert.ok(missing.err.includes(SHOWN), missing.err);
    assert.doesNotMatch(missing.err, unprintable);
  });

  test('in the refusal of a server', async (t) => {
    const server = createServer((_, response) => {
      response.writeHead(400, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ error: 'x', message: NASTY, request_id: 'y' }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    const folder = await folderFor(t, `http://127.0.0.1:${port}`, 'hg_0123456789ab_x');
    const { exitCode, err } = await folder.run('export', 'tags');
    assert.equal(exitCode, 1);
    assert.ok(err.includes(SHOWN), err);
    assert.doesNotMatch(err, unprintable);
  });

  test('in names from the database, which JSON still represents exactly', async (t) => {
    const folder = await folderFor(t, running.headgate.url, 'hg_0123456789ab_x');
    const database = join(folder.path, 'headgate.db');
    await folder.run('orgs', 'create', 'acme', '--database', database);
    const file = new DatabaseSync(database);
    file.prepare('UPDATE organisations SET name = ?').run(NASTY);
    file.close();
    const { out } = await folder.run('orgs', 'list', '--database', database);
    assert.ok(out.includes(SHOWN), out);
    assert.doesNotMatch(out, unprintable);
    const listed = await folder.run('orgs', 'list', '--json', '--database', database);
    assert.doesNotMatch(listed.out, unprintable);
    assert.equal((JSON.parse(listed.out) as { name: string }[])[0]!.name, NASTY);
  });

  test('in exported records, while a pipe gets them unchanged', { skip: withoutScript }, async (t) => {
    const { key } = await running.headgate.newKey();
    await apiOf(running.headgate.url, key).upload('tags', [leastRecord('tags', { name: NASTY })]);
    const folder = await folderFor(t, running.headgate.url, key);
    const args = ['export', 'tags', '--format', 'csv'];
    assert.ok((await folder.run(...args)).out.includes(NASTY));
    const command = commandLine(args).map(shellWord).join(' ');
    const env = { ...process.env, ...folder.environment };
    const { stdout } = await promisify(execFile)('script', ['-qec', command, '/dev/null'], { env });
    assert.ok(stdout.includes(SHOWN), stdout);
    // A terminal adds a carriage return to every line feed.
    assert.doesNotMatch(stdout.replaceAll('\r\n', '\n'), unprintable);
  });
});
