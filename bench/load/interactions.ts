// The load of single interactions: a process with many connections, each of which sends its next request when the
// last is answered. It speaks HTTP on bare sockets, because it shares the machine with what it measures.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { takeOrder } from '../../tests/harness/prepared-child.ts';
import type { Timed } from './uploads.ts';

export interface InteractionTarget {
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface InteractionJob {
  readonly target: InteractionTarget;
  readonly connections: number;
  readonly requests: number;
}

const endOfHead = Buffer.from('\r\n\r\n');
const lengthHeader = /\r\ncontent-length: (\d+)\r\n/i;

function requestBytes({ port, path, headers, body }: InteractionTarget): Buffer {
  const lines = Object.entries({
    Host: `127.0.0.1:${port}`,
    'Content-Type': 'application/json',
    ...headers,
    'Content-Length': String(Buffer.byteLength(body)),
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
}

/** How long the answer at the beginning of the bytes is; null while its head is incomplete. Throws unless it is a 2xx. */
function answerLength(bytes: Buffer): number | null {
  const headEnd = bytes.indexOf(endOfHead);
  if (headEnd === -1) return null;
  const head = bytes.toString('latin1', 0, headEnd + 2);
  const length = lengthHeader.exec(head);
  if (!head.startsWith('HTTP/1.1 2') || length === null) {
    throw new Error(`not a success of known length: ${bytes.toString('utf8', 0, 500)}`);
  }
  return headEnd + endOfHead.length + Number(length[1]);
}

/** Sends requests, one after the other, while `mayGoOn` allows another. */
function sendAll(socket: Socket, request: Buffer, mayGoOn: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    let received: Buffer | null = null;
    const sendNext = (): void => {
      if (mayGoOn()) socket.write(request);
      else resolve();
    };
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the connection was closed')));
    socket.on('data', (chunk: Buffer) => {
      received = received === null ? chunk : Buffer.concat([received, chunk]);
      try {
        const length = answerLength(received);
        if (length === null || received.length < length) return;
      } catch (error) {
        reject(error as Error);
        return;
      }
      received = null;
      sendNext();
    });
    sendNext();
  });
}

if (import.meta.main) {
  takeOrder<InteractionJob, Timed>(async ({ target, connections, requests }) => {
    const request = requestBytes(target);
    const sockets = await Promise.all(
      Array.from({ length: connections }, async () => {
        const socket = connect({ port: target.port, host: '127.0.0.1', noDelay: true });
        await once(socket, 'connect');
        return socket;
      }),
    );
    return async () => {
      const startedAtMs = performance.now();
      let left = requests;
      await Promise.all(sockets.map((socket) => sendAll(socket, request, () => left-- > 0)));
      const elapsedMs = performance.now() - startedAtMs;
      for (const socket of sockets) socket.removeAllListeners('close').destroy();
      return { count: requests, elapsedMs };
    };
  });
}
