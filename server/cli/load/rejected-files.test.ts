import assert from 'node:assert/strict';
import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { inTheWay, RejectedFiles } from './rejected-files.ts';

async function newFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-rejected-'));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

function rejected(name: string) {
  const errors = [{ field: 'region', code: 'required', message: 'region is required' } as const];
  return { record: { shop_id: 'x', name }, errors, line: 7, origin: null };
}

test('records written after the last journal entry are removed when a load resumes', async (t) => {
  const folder = await newFolder(t);
  const first = new RejectedFiles(folder, 'id');
  first.append('shops', 'shops.csv', [rejected('confirmed – é')]);
  const known = first.bytes();
  first.append('shops', 'shops.csv', [rejected('not confirmed')]);
  first.append('tags', 'tags.csv', [rejected('not confirmed')]);
  appendFileSync(join(folder, 'shops.id.part'), '{"record":{"shop_id":"half a li');

  const second = new RejectedFiles(folder, 'id');
  second.goOn(known);
  second.append('shops', 'shops.csv', [rejected('after it')]);
  const { written, setAside } = second.finish([]);
  assert.deepEqual([written, setAside], [[join(folder, 'shops.ndjson')], []]);
  const names = readFileSync(written[0]!, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as ReturnType<typeof rejected>).record.name);
  assert.deepEqual(names, ['confirmed – é', 'after it']);
  assert.deepEqual(readdirSync(folder), ['shops.ndjson']);
});

test('two simultaneous loads write to the same folder without mixing their records', async (t) => {
  const folder = await newFolder(t);
  const [one, other] = [new RejectedFiles(folder, 'one'), new RejectedFiles(folder, 'other')];
  one.append('shops', 'a.csv', [rejected('one')]);
  other.append('shops', 'b.csv', [rejected('other')]);
  other.goOn({});
  other.append('shops', 'b.csv', [rejected('other')]);
  one.finish([]);
  const { setAside } = other.finish([]);
  assert.match(readFileSync(setAside[0]!, 'utf8'), /"name":"one"/);
  assert.match(readFileSync(join(folder, 'shops.ndjson'), 'utf8'), /"name":"other"/);
});

test('only a file of rejected records may be replaced by rejected records', async (t) => {
  const folder = await newFolder(t);
  const types = new Set(['shops', 'tags'] as const);
  assert.equal(await inTheWay(join(folder, 'missing'), types), null);
  await writeFile(join(folder, 'offers.ndjson'), '{"offer_id":"x"}\n');
  await writeFile(join(folder, 'tags.ndjson'), '{"errors":[],"line":1,"record":{"tag_id":"x"}}\n');
  assert.equal(await inTheWay(folder, types), null);
  await writeFile(join(folder, 'shops.ndjson'), '{"shop_id":"x"}\n');
  assert.equal(await inTheWay(folder, types), join(folder, 'shops.ndjson'));
  await writeFile(join(folder, 'shops.ndjson'), 'no JSON');
  assert.equal(await inTheWay(folder, types), join(folder, 'shops.ndjson'));
});

test('an empty folder is removed, and one that contains files is kept', async (t) => {
  const folder = join(await newFolder(t), 'rejected');
  const files = new RejectedFiles(folder, 'id');
  files.removeFolderIfEmpty();
  files.append('shops', 'shops.csv', [rejected('x')]);
  files.removeFolderIfEmpty();
  assert.ok(existsSync(folder));
  files.goOn({});
  files.removeFolderIfEmpty();
  assert.ok(!existsSync(folder));
});
