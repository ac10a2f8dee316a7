// A real HTTP server whose responses never end. Pages of any origin may use it.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface EndlessServer {
  readonly url: string;
  /** The paths that began an endless response, in the order of arrival. */
  readonly begun: readonly string[];
  /** How many of the endless responses the client has not closed. */
  open(): number;
  /** The bytes of all endless responses. */
  sentBytes(): number;
  close(): Promise<void>;
}

const piece = Buffer.alloc(1024 * 1024, 'x');

/** Starts a server. Paths that begin with `missing` get a 404 that ends. */
export async function startEndlessServer(missing: string): Promise<EndlessServer> {
  const begun: string[] = [];
  let openCount = 0;
  let sentBytes = 0;
  const server = createServer(async ({ url: path = '', headers, method }, response) => {
    response.setHeader('Access-Control-Allow-Origin', '*');
    if (method === 'OPTIONS') {
      response.setHeader('Access-Control-Allow-Headers', 'Authorization, Content-Type');
      return void response.end();
    }
    if (path.startsWith(missing)) {
      const body = { error: 'Not Found', message: 'There is no such record.', request_id: 'r' };
      response.writeHead(404, { 'Content-Type': 'application/json' });
      return void response.end(JSON.stringify(body));
    }
    begun.push(path);
    openCount++;
    response.writeHead(200, { 'Content-Type': headers.accept! });
    const closed = once(response, 'close');
    while (!response.destroyed) {
      sentBytes += piece.length;
      if (!response.write(piece)) await Promise.race([once(response, 'drain'), closed]);
    }
    openCount--;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    begun,
    open: () => openCount,
    sentBytes: () => sentBytes,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
