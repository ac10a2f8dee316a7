// Reads the certificate and the private key that the settings name, and checks them before the server starts.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { Failure } from './failure.ts';
import { environmentName, type Settings } from './settings.ts';

export interface TlsPair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** Allows only cipher suites with forward secrecy and authenticated encryption: no RSA key exchange, no CBC. */
export const tlsProtocol = {
  minVersion: 'TLSv1.2',
  ciphers: [
    'TLS_AES_256_GCM_SHA384',
    'TLS_CHACHA20_POLY1305_SHA256',
    'TLS_AES_128_GCM_SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-RSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-CHACHA20-POLY1305',
    'ECDHE-RSA-CHACHA20-POLY1305',
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-RSA-AES128-GCM-SHA256',
  ].join(':'),
} as const;

type TlsSetting = 'tlsCertFile' | 'tlsKeyFile';

/** Resolves to null if the settings do not ask for TLS. */
export async function readTls({
  tlsCertFile,
  tlsKeyFile,
}: Pick<Settings, TlsSetting>): Promise<TlsPair | null | Failure> {
  if (tlsCertFile === null || tlsKeyFile === null) return null;
  const cert = await readUsable('tlsCertFile', tlsCertFile, 'a certificate in PEM form', (bytes) =>
    createSecureContext({ cert: bytes }),
  );
  if (cert instanceof Failure) return cert;
  const key = await readUsable(
    'tlsKeyFile',
    tlsKeyFile,
    'a private key in PEM form without a passphrase',
    (bytes) => createSecureContext({ key: bytes }),
  );
  if (key instanceof Failure) return key;
  // Checks that the key belongs to the certificate. If they have different algorithms, a secure context accepts them
  // without an error, but every handshake fails.
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
    return problem(
      'tlsKeyFile',
      tlsKeyFile,
      `is not the private key of the certificate that ${environmentName('tlsCertFile')} names`,
    );
  }
  return { cert, key };
}

async function readUsable(
  setting: TlsSetting,
  path: string,
  form: string,
  use: (bytes: Buffer) => void,
): Promise<Buffer | Failure> {
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (error) {
    return problem(setting, path, `cannot be read: ${(error as Error).message}`);
  }
  try {
    use(bytes);
  } catch (error) {
    return problem(setting, path, `cannot be used as ${form}: ${(error as Error).message}`);
  }
  return bytes;
}

function problem(setting: TlsSetting, path: string, what: string): Failure {
  return new Failure(`${environmentName(setting)} names ${quote(path)}, which ${what}`);
}
