// `headgate ready`: checks whether the server with these settings is ready, for health checks and scripts.

import { request as requestByHttp } from 'node:http';
import { request as requestByHttps } from 'node:https';
import { isIPv6 } from 'node:net';
import { Failure } from '../failure.ts';
import { apiRoutes } from '../http/routes.ts';
import { readSettings, type Settings } from '../settings.ts';
import type { Call } from './call.ts';
import { type ExitCode, exitCodes, failed, misused } from './io.ts';

const PATIENCE_MS = 5000;
const OK = 200;
/** If the server listens on all addresses, the request goes to the loopback address. */
const ownAddresses: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

export async function ready({ io, option }: Call): Promise<ExitCode> {
  const settings = readSettings(io.env, { host: option('host'), port: option('port') });
  if (settings instanceof Failure) return misused(io, settings);
  if (settings.port === 0) {
    return misused(
      io,
      'port 0 lets the server pick a free port, which is not known here; use --port with the port that it printed ' +
        'when it started',
    );
  }
  const url = readinessUrl(settings);
  const answer = await statusOf(url);
  if (answer === OK) {
    io.out('ready');
    return exitCodes.done;
  }
  return failed(
    io,
    typeof answer === 'number'
      ? `the server at ${url.origin} is not ready: it answered ${answer}`
      : `no server answers at ${url.origin}: ${answer}`,
  );
}

function readinessUrl({ host, port, tlsCertFile }: Settings): URL {
  const address = ownAddresses[host] ?? host;
  const shownAddress = isIPv6(address) ? `[${address}]` : address;
  const scheme = tlsCertFile === null ? 'http' : 'https';
  return new URL(apiRoutes.getReadiness.path, `${scheme}://${shownAddress}:${port}`);
}

/** Resolves to the HTTP status, or to a sentence if there is no response. */
function statusOf(url: URL): Promise<number | string> {
  const { promise, resolve } = Promise.withResolvers<number | string>();
  const deadline = { signal: AbortSignal.timeout(PATIENCE_MS) };
  // The certificate is not verified, because it is for the public host name, and the request uses the local address.
  const asking =
    url.protocol === 'https:'
      ? requestByHttps(url, { ...deadline, rejectUnauthorized: false })
      : requestByHttp(url, deadline);
  asking
    .on('response', (response) => {
      response.resume();
      resolve(response.statusCode!);
    })
    .on('error', (error) =>
      resolve(deadline.signal.aborted ? `no response within ${PATIENCE_MS / 1000} s` : error.message),
    )
    .end();
  return promise;
}
