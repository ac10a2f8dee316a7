// Serves /metrics for Prometheus on a separate port, so that the public port does not show metrics.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The text format that Prometheus reads. */
const TEXT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Serves the text, and prints the URL. Resolves to a function that stops serving it. */
export async function serveMetrics(
  host: string,
  port: number,
  text: () => Promise<string>,
  out: (line: string) => void,
): Promise<() => Promise<void>> {
  const server = createServer((request, response) => {
    handle(request, response, text).catch((error: Error) => respond(response, 500, `${error.message}\n`));
  });
  await once(server.listen(port, host), 'listening');
  // The metrics server alone must not keep the process alive.
  server.unref();
  const { port: taken } = server.address() as AddressInfo;
  out(`metrics at http://${host.includes(':') ? `[${host}]` : host}:${taken}/metrics`);
  return async () => {
    const closed = once(server.close(), 'close');
    server.closeAllConnections();
    await closed;
  };
}

async function handle(
  { method, url = '' }: IncomingMessage,
  response: ServerResponse,
  text: () => Promise<string>,
): Promise<void> {
  if (url.split('?', 1)[0] !== '/metrics') return respond(response, 404, 'There is only /metrics here.\n');
  if (method !== 'GET' && method !== 'HEAD') {
    response.setHeader('Allow', 'HEAD, GET');
    return respond(response, 405, 'Use GET.\n');
  }
  respond(response, 200, await text(), TEXT_TYPE);
}

function respond(response: ServerResponse, status: number, body: string, type = 'text/plain'): void {
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) }).end(body);
}
