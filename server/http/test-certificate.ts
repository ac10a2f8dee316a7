// Makes a self-signed certificate for tests of TLS.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The reason to skip tests that need a certificate, or false if openssl is installed. */
export const withoutOpenssl =
  spawnSync('openssl', ['version']).status === 0 ? false : 'there is no openssl here';

export interface Certificate {
  readonly cert: Buffer;
  readonly key: Buffer;
}

export function newCertificate(): Certificate {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-connections-'));
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/CN=test'];
  execFileSync('openssl', ['req', '-x509', ...kind, '-out', cert, '-keyout', key], { stdio: 'ignore' });
  const pair = { cert: readFileSync(cert), key: readFileSync(key) };
  rmSync(folder, { recursive: true });
  return pair;
}
