import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Failure } from '../failure.ts';
import { isPostgres, readDatabaseLocation } from './database-location.ts';

test('a PostgreSQL address is recognised by its scheme, in upper or lower case', () => {
  for (const url of ['postgres://h/d', 'postgresql://h/d', 'POSTGRES://h/d', 'PostgreSQL://h/d']) {
    assert.equal(isPostgres(url), true, url);
    assert.deepEqual(readDatabaseLocation(url), { kind: 'postgres', url });
  }
});

test('any other text is the path of a SQLite file, with or without the prefix sqlite:', () => {
  for (const [database, path] of [
    ['data/headgate.db', 'data/headgate.db'],
    ['sqlite:/var/headgate.db', '/var/headgate.db'],
    ['SQLite:headgate.db', 'headgate.db'],
    ['postgres', 'postgres'],
    ['postgres:headgate.db', 'postgres:headgate.db'],
    ['sqlite:postgres://h/d', 'postgres://h/d'],
  ] as const) {
    assert.equal(isPostgres(database), false, database);
    assert.deepEqual(readDatabaseLocation(database), { kind: 'sqlite', path });
  }
});

test('a text that names no supported database is refused with a sentence', () => {
  const noFile = 'the database must be a file on disk: give sqlite:PATH';
  for (const [database, sentence] of [
    ['', noFile],
    ['sqlite:', noFile],
    [':memory:', noFile],
    ['SQLITE::memory:', noFile],
    ['a\0b', noFile],
    ['mysql://h/d', 'there is no store for mysql databases: give sqlite:PATH or postgres://…'],
    ['x://h', 'there is no store for x databases: give sqlite:PATH or postgres://…'],
    ['sqlite://h/d', 'a SQLite file is named by its path, not by a URL: give sqlite:PATH'],
  ] as const) {
    assert.deepEqual(readDatabaseLocation(database), new Failure(sentence), JSON.stringify(database));
  }
});
