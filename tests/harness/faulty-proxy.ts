// A real HTTP proxy in front of a server. It fails on request: it cuts connections, responds by itself, or waits.

import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ProxiedRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/**
 * `cut before`: the server never gets the request. `cut after`: it processes the request, and its response is lost.
 * `silence`: no response ever comes. A promise holds the request back until it resolves.
 */
export type Fault =
  | 'cut before'
  | 'cut after'
  | 'cut in the answer'
  | 'silence'
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body: string }
  | Promise<null>;

export interface FaultyProxy {
  readonly url: string;
  /** Every request, in the order of arrival. */
  readonly requests: readonly ProxiedRequest[];
  /** Returns the fault for a request; null passes the request on. */
  fault(request: ProxiedRequest, number: number): Fault | null;
  close(): Promise<void>;
}

const hopByHop = ['connection', 'keep-alive', 'transfer-encoding', 'host', 'content-length', 'expect'];

export async function startFaultyProxy(target: string): Promise<FaultyProxy> {
  const requests: ProxiedRequest[] = [];
  const server = createServer(async (incoming, answer) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const { method = '', url: path = '', headers } = incoming;
    const request: ProxiedRequest = { method, path, headers, body: Buffer.concat(chunks) };
    requests.push(request);
    const fault = await proxy.fault(request, requests.length - 1);
    if (fault === 'silence') return;
    if (fault === 'cut before') return void incoming.socket.destroy();
    if (fault !== null && typeof fault === 'object') {
      answer.writeHead(fault.status, { 'Content-Length': Buffer.byteLength(fault.body), ...fault.headers });
      return void answer.end(fault.body);
    }
    const passed = await passOn(target, request);
    if (passed === null || fault === 'cut after') return void incoming.socket.destroy();
    answer.writeHead(passed.status, { ...passed.headers, 'Content-Length': passed.body.length });
    if (fault === null) return void answer.end(passed.body);
    answer.write(passed.body.subarray(0, passed.body.length / 2), () => incoming.socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const proxy: FaultyProxy = {
    url: `http://127.0.0.1:${port}`,
    requests,
    fault: () => null,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
  return proxy;
}

/** Resolves to null if the server cannot be reached. */
async function passOn(
  target: string,
  { method, path, headers, body }: ProxiedRequest,
): Promise<{ status: number; headers: Record<string, string>; body: Buffer } | null> {
  const passed = Object.entries(headers).filter(([name]) => !hopByHop.includes(name)) as [string, string][];
  try {
    const response = await fetch(target + path, {
      method,
      headers: Object.fromEntries(passed),
      ...(body.length === 0 ? {} : { body: new Uint8Array(body) }),
    });
    const answered = [...response.headers].filter(([name]) => !hopByHop.includes(name));
    return {
      status: response.status,
      headers: Object.fromEntries(answered),
      body: Buffer.from(await response.arrayBuffer()),
    };
  } catch {
    return null;
  }
}
