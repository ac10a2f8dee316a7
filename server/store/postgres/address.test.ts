import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ConnectionOptions } from 'node:tls';
import { StoreUnusable } from '../store.ts';
import { readAddress, withSslMode } from './address.ts';

const certificate = new URL(import.meta.url).pathname;

function sslOf(query: string, env = {}): ConnectionOptions | false {
  return readAddress(`postgres://u:secret@db.example/app${query}`, env).hosts[0]!.ssl as
    | ConnectionOptions
    | false;
}

describe('the URL of a PostgreSQL database', () => {
  test('contains everything that a connection needs, with percent-encoding', () => {
    const { config, hosts, shown } = readAddress(
      'postgresql://an%40a:p%2Fw%23%25@db.example:6543/my%20app',
      {},
    );
    const { user, password, database, application_name } = config;
    const { host, port } = hosts[0]!;
    assert.deepEqual(
      { host, port, user, password, database, application_name },
      {
        host: 'db.example',
        port: 6543,
        user: 'an@a',
        password: 'p/w#%',
        database: 'my app',
        application_name: 'headgate',
      },
    );
    assert.equal(shown, 'the PostgreSQL database my app at db.example:6543');
  });

  test('takes missing parts from the environment', () => {
    const env = { PGHOST: 'elsewhere', PGPORT: '7000', PGUSER: 'bob', PGPASSWORD: 'pw', PGDATABASE: 'base' };
    const { config, hosts } = readAddress('postgres://', env);
    assert.deepEqual(
      [hosts[0]!.host, hosts[0]!.port, config.user, config.password, config.database],
      ['elsewhere', 7000, 'bob', 'pw', 'base'],
    );
    assert.equal(readAddress('postgres://ann@h/', {}).config.database, 'ann');
  });

  test('may name a socket, an IPv6 address and other parameters', () => {
    const socket = readAddress('postgres:///app?host=/var/run/postgresql&sslmode=verify-full', {});
    assert.equal(socket.hosts[0]!.host, '/var/run/postgresql');
    assert.equal(socket.hosts[0]!.ssl, false, 'a socket needs no TLS, as in libpq');
    assert.equal(readAddress('postgres://u@[::1]:5433/app', {}).hosts[0]!.host, '::1');
    const { config } = readAddress('postgres://u@h/app?application_name=x&options=-csearch_path%3Dours', {});
    assert.deepEqual([config.application_name, config.options], ['x', '-csearch_path=ours']);
  });

  const several: readonly { readonly url: string; readonly env?: Record<string, string> }[] = [
    { url: 'postgres://u:p%2Cw@one:5433,two,[::1]:5434/app' },
    { url: 'postgres://u:p%2Cw@/app?host=one,two,::1&port=5433,,5434' },
    { url: 'postgres://u:p%2Cw@/app', env: { PGHOST: 'one,two,::1', PGPORT: '5433,5432,5434' } },
  ];
  for (const { url, env = {} } of several) {
    test(`may name several hosts: ${url}${env.PGHOST === undefined ? '' : ' with PGHOST'}`, () => {
      const address = readAddress(url, env);
      assert.deepEqual(
        address.hosts.map(({ host, port }) => [host, port]),
        [
          ['one', 5433],
          ['two', 5432],
          ['::1', 5434],
        ],
      );
      assert.deepEqual([address.config.password, address.config.database], ['p,w', 'app']);
      assert.equal(address.shown, 'the PostgreSQL database app at one:5433,two:5432,::1:5434');
      assert.ok(address.needsWritable);
    });
  }

  test('may give one port for all of its hosts', () => {
    const { hosts } = readAddress('postgres://u@/app?host=one,two&port=6000', {});
    assert.deepEqual(
      hosts.map(({ host, port }) => [host, port]),
      [
        ['one', 6000],
        ['two', 6000],
      ],
    );
  });

  test('may require a server that accepts writes', () => {
    const needs = (query: string, env = {}) => readAddress(`postgres://u@h/app${query}`, env).needsWritable;
    assert.equal(needs('?target_session_attrs=read-write'), true);
    assert.equal(needs('?target_session_attrs=primary'), true);
    assert.equal(needs('?target_session_attrs=any'), false);
    assert.equal(needs(''), false);
    assert.equal(needs('', { PGTARGETSESSIONATTRS: 'read-write' }), true);
  });

  const refused: readonly { readonly url: string; readonly reason: RegExp }[] = [
    { url: 'postgres://u:secret@h:port/app', reason: /cannot be read/ },
    {
      url: 'postgres://u:secret@h/app?sslmode=allow',
      reason: /sslmode=allow is not supported: use disable/,
    },
    { url: 'postgres://u:secret@h/app?sslmod=require', reason: /parameter sslmod, .* use host/ },
    { url: 'postgres://u:%secret@h/app', reason: /write %25/ },
    { url: 'postgres://u:secret@h,g:port/app', reason: /cannot be read/ },
    {
      url: 'postgres://u:secret@/app?host=a,b,c&port=1,2',
      reason: /has 3 hosts and 2 ports: give one for each/,
    },
    {
      url: 'postgres://u:secret@h/app?target_session_attrs=standby',
      reason: /target_session_attrs=standby cannot be used: .* give any, read-write or primary/,
    },
    { url: 'postgres://u:secret@h/app?port=0', reason: /from 1 to 65535, not 0/ },
    { url: 'postgres://u:secret@h/app?sslmode=verify-ca', reason: /needs sslrootcert=FILE/ },
    {
      url: 'postgres://u:secret@h/app?sslmode=verify-full&sslrootcert=/no/such.pem',
      reason: /sslrootcert of the PostgreSQL URL names a file that cannot be read: .*\/no\/such\.pem/,
    },
  ];
  for (const { url, reason } of refused) {
    test(`is refused in one sentence, without its password: ${url}`, () => {
      assert.throws(
        () => readAddress(url, {}),
        (error) => {
          assert.ok(error instanceof StoreUnusable);
          assert.match(error.message, reason);
          assert.doesNotMatch(error.message, /secret|\n/);
          return true;
        },
      );
    });
  }
});

describe('sslmode', () => {
  test('disable uses no TLS', () => {
    assert.equal(sslOf('?sslmode=disable'), false);
  });

  test('is prefer by default, and may come from the environment', () => {
    assert.equal(readAddress('postgres://h/app', {}).sslMode, 'prefer');
    assert.equal(readAddress('postgres://h/app', { PGSSLMODE: 'require' }).sslMode, 'require');
    assert.equal(
      readAddress('postgres://h/app?sslmode=disable', { PGSSLMODE: 'require' }).sslMode,
      'disable',
    );
  });

  const named = (name: string) => ({ subject: { CN: name }, subjectaltname: `DNS:${name}` }) as never;
  const checked = [
    { query: '?sslmode=prefer', checksAuthority: false, checksName: false },
    { query: '?sslmode=require', checksAuthority: false, checksName: false },
    { query: `?sslmode=require&sslrootcert=${certificate}`, checksAuthority: true, checksName: false },
    { query: `?sslmode=verify-ca&sslrootcert=${certificate}`, checksAuthority: true, checksName: false },
    { query: '?sslmode=verify-full', checksAuthority: true, checksName: true },
    { query: '?sslmode=verify-full&sslrootcert=system', checksAuthority: true, checksName: true },
  ];
  for (const { query, checksAuthority, checksName } of checked) {
    test(`${query.replace(certificate, 'FILE')} has the same checks as in libpq`, () => {
      const ssl = sslOf(query);
      assert.ok(ssl !== false);
      assert.equal(ssl.rejectUnauthorized, checksAuthority);
      assert.equal(ssl.checkServerIdentity!('ignored', named('db.example')), undefined);
      assert.equal(ssl.checkServerIdentity!('ignored', named('other.example')) instanceof Error, checksName);
    });
  }

  test('can be replaced without changing anything else of the URL', () => {
    const settled = withSslMode(readAddress('postgres://u:p%2Fw@h:1/app?application_name=x', {}), 'require');
    assert.equal(settled.sslMode, 'require');
    assert.deepEqual(
      [settled.config.password, settled.hosts[0]!.port, settled.config.application_name],
      ['p/w', 1, 'x'],
    );
    const several = withSslMode(readAddress('postgres://u@a:1,b/app', {}), 'disable');
    assert.deepEqual(
      several.hosts.map(({ host, ssl }) => [host, ssl]),
      [
        ['a', false],
        ['b', false],
      ],
    );
  });
});
