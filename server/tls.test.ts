import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Failure } from './failure.ts';
import { readTls } from './tls.ts';

const folder = mkdtempSync(join(tmpdir(), 'headgate-tls-'));
after(() => rmSync(folder, { recursive: true }));

function fileOf(name: string, content: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

async function problemWith(tlsCertFile: string, tlsKeyFile: string): Promise<string> {
  const problem = await readTls({ tlsCertFile, tlsKeyFile });
  assert.ok(problem instanceof Failure, 'the files were accepted');
  assert.doesNotMatch(problem.reason, /\n/);
  return problem.reason;
}

test('without files there is no TLS', async () => {
  assert.equal(await readTls({ tlsCertFile: null, tlsKeyFile: null }), null);
});

const skip = spawnSync('openssl', ['version']).status === 0 ? false : 'there is no openssl here';

describe('a certificate and its key', { skip }, () => {
  const make = (name: string, algorithm: readonly string[]) => {
    const paths = { cert: join(folder, `${name}.cert.pem`), key: join(folder, `${name}.key.pem`) };
    execFileSync(
      'openssl',
      [
        ...['req', '-x509', '-newkey', ...algorithm, '-nodes', '-days', '2', '-subj', '/CN=test'],
        ...['-out', paths.cert, '-keyout', paths.key],
      ],
      { stdio: 'ignore' },
    );
    return paths;
  };
  const elliptic = ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
  let pair: ReturnType<typeof make>;
  before(() => {
    pair = make('pair', elliptic);
  });

  test('are read without changes', async () => {
    assert.deepEqual(await readTls({ tlsCertFile: pair.cert, tlsKeyFile: pair.key }), {
      cert: readFileSync(pair.cert),
      key: readFileSync(pair.key),
    });
  });

  test('may be in one file', async () => {
    const both = fileOf('both.pem', Buffer.concat([readFileSync(pair.key), readFileSync(pair.cert)]));
    assert.ok(!((await readTls({ tlsCertFile: both, tlsKeyFile: both })) instanceof Failure));
  });

  test('that are missing or folders are refused with the name of the setting', async () => {
    const missing = join(folder, 'missing.pem');
    for (const [path, code] of [
      [missing, 'ENOENT'],
      [folder, 'EISDIR'],
    ] as const) {
      const named = (env: string) => new RegExp(`^${env} names "${path}", which cannot be read: ${code}`);
      assert.match(await problemWith(path, pair.key), named('HEADGATE_TLS_CERT'));
      assert.match(await problemWith(pair.cert, path), named('HEADGATE_TLS_KEY'));
    }
  });

  test('that are not in PEM form are refused with the name of the setting', async () => {
    const text = fileOf('text.pem', 'neither\n');
    const empty = fileOf('empty.pem', '');
    const cut = fileOf('cut.pem', readFileSync(pair.key).subarray(0, 90));
    for (const path of [text, empty, pair.key]) {
      assert.match(
        await problemWith(path, pair.key),
        /^HEADGATE_TLS_CERT names "[^"]+", which cannot be used as a certificate in PEM form: \S/,
      );
    }
    for (const path of [text, empty, cut, pair.cert]) {
      assert.match(
        await problemWith(pair.cert, path),
        /^HEADGATE_TLS_KEY names "[^"]+", which cannot be used as a private key in PEM form/,
      );
    }
  });

  test('that do not match are refused, also if their algorithms differ', async () => {
    for (const other of [make('other', elliptic), make('rsa', ['rsa:2048'])]) {
      assert.equal(
        await problemWith(pair.cert, other.key),
        `HEADGATE_TLS_KEY names "${other.key}", which is not the private key of the certificate that HEADGATE_TLS_CERT names`,
      );
    }
  });

  test('are refused if the key has a passphrase', async () => {
    const locked = join(folder, 'locked.pem');
    execFileSync('openssl', ['pkey', '-in', pair.key, '-aes256', '-passout', 'pass:sesame', '-out', locked], {
      stdio: 'ignore',
    });
    assert.match(await problemWith(pair.cert, locked), /^HEADGATE_TLS_KEY names .*without a passphrase/);
  });
});
