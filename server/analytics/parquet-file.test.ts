import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { Failure } from '../failure.ts';
import { writeParquet } from './parquet-file.ts';
import type { ReplicaTable } from './replica-tables.ts';

const table: ReplicaTable = {
  name: 'notes',
  key: ['id'],
  columns: [
    { name: 'id', type: 'UUID' },
    { name: 'text', type: 'VARCHAR' },
  ],
};
const never = new AbortController().signal;

function idOf(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
}

/** Yields one piece for each list of texts. The id of a text is its place in the list. */
async function* piecesOf(...lists: readonly (readonly string[])[]): AsyncGenerator<string> {
  for (const texts of lists) {
    yield texts.map((text, at) => `${JSON.stringify({ id: idOf(at), text })}\n`).join('');
  }
}

describe('a Parquet file', () => {
  let folder: string;
  let connection: DuckDBConnection;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "headgate-parquet's-"));
    connection = await (await DuckDBInstance.create(':memory:')).connect();
  });
  after(() => rm(folder, { recursive: true }));

  async function rowsOf(sql: string, path: string): Promise<unknown[][]> {
    const reader = await connection.runAndReadAll(sql, [path]);
    return reader.getRowsJson();
  }

  const write = (pieces: AsyncIterable<string>, path: string, hasVersions = false, signal = never) =>
    writeParquet(pieces, { path, table, temporaryFolder: folder, hasVersions }, signal);

  it('has all records of all pieces in their order, and no temporary files remain', async () => {
    const path = join(folder, 'a.parquet');
    assert.equal(await write(piecesOf(['b', 'a\n"b"'], [], ['', 'c']), path), 4);
    assert.deepEqual(await rowsOf('SELECT id, text FROM read_parquet(?)', path), [
      [idOf(0), 'b'],
      [idOf(1), 'a\n"b"'],
      [idOf(0), ''],
      [idOf(1), 'c'],
    ]);
    assert.deepEqual(await readdir(folder), ['a.parquet']);
  });

  it('has only the last version of each record, if there may be several', async () => {
    const path = join(folder, 'versions.parquet');
    assert.equal(await write(piecesOf(['old', 'kept'], ['new']), path, true), 2);
    assert.deepEqual(await rowsOf('SELECT id, text FROM read_parquet(?) ORDER BY id', path), [
      [idOf(0), 'new'],
      [idOf(1), 'kept'],
    ]);
  });

  it('has its columns even if there are no records', async () => {
    const path = join(folder, 'empty.parquet');
    assert.equal(await write(piecesOf(), path), 0);
    const described = await rowsOf('DESCRIBE FROM read_parquet(?)', path);
    assert.deepEqual(
      described.map(([name, type]) => [name, type]),
      [
        ['id', 'UUID'],
        ['text', 'VARCHAR'],
      ],
    );
  });

  it('has small row groups if the records are long, so that little memory is needed', async () => {
    const path = join(folder, 'long.parquet');
    const long = Array.from({ length: 500 }, (_, at) => String(at).padEnd(10_000, 'x'));
    assert.equal(await write(piecesOf(...Array.from({ length: 14 }, () => long)), path), 7000);
    const [[groups, compression]] = (await rowsOf(
      'SELECT count(DISTINCT row_group_id)::INTEGER, any_value(compression) FROM parquet_metadata(?)',
      path,
    )) as [[number, string]];
    assert.ok(groups > 1, `${groups} row groups`);
    assert.equal(compression, 'ZSTD');
  });

  it('is not written if the folder is missing or a record cannot be read', async () => {
    const missing = await write(piecesOf(['a']), join(folder, 'none', 'a.parquet'));
    assert.ok(missing instanceof Failure);
    assert.match(missing.reason, /^IO Error: [^\n]*none\/a\.parquet/);
    async function* wrongPieces(): AsyncGenerator<string> {
      yield '{"id": "no id", "text": "a"}\n';
    }
    const wrong = await write(wrongPieces(), join(folder, 'wrong.parquet'));
    assert.ok(wrong instanceof Failure);
    assert.match(wrong.reason, /no id/);
  });

  it('is not written if the pieces end with an error, which is thrown', async () => {
    async function* broken(): AsyncGenerator<string> {
      yield* piecesOf(['a']);
      throw new RangeError('the connection was lost');
    }
    await assert.rejects(write(broken(), join(folder, 'broken.parquet')), RangeError);
    assert.ok(!(await readdir(folder)).includes('broken.parquet'));
  });

  for (const beforeWriting of [true, false]) {
    it(`stops if it is aborted ${beforeWriting ? 'before' : 'while'} it is written`, async () => {
      const stop = new AbortController();
      const texts = Array.from({ length: 2000 }, (_, at) => `${at} ${Math.sin(at)} `.repeat(400));
      const pieces = await Array.fromAsync(piecesOf(texts));
      async function* aborting(): AsyncGenerator<string> {
        for (let times = 0; times < 10; times++) yield* pieces;
        if (beforeWriting) stop.abort();
        // The file is being written by then.
        else setTimeout(() => stop.abort(), 20);
      }
      const result = await write(aborting(), join(folder, 'aborted.parquet'), false, stop.signal);
      assert.ok(result instanceof Failure, `it wrote ${String(result)} records`);
      assert.match(result.reason, /interrupt/i);
    });
  }
});
