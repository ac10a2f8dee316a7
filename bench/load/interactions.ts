// Generates the load of interactions, one per request. The process has many connections. Each connection sends its next
// request after the last response. The process writes HTTP to bare sockets to save CPU time, because it runs on the
// measured machine.

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

const receiving = Buffer.alloc(64 * 1024);
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

/**
 * Returns the length of the response at the start of the bytes, or null if its head is incomplete. Throws if the status
 * is not 2xx, or if there is no Content-Length.
 */
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

/** All connections read into the same buffer, because a response is handled at once and not kept. */
class Connection {
  readonly #socket: Socket;
  #onBytes: (bytes: Buffer) => void = () => {};

  private constructor(port: number) {
    this.#socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer: receiving,
        callback: (length) => {
          this.#onBytes(receiving.subarray(0, length));
          return true;
        },
      },
    });
  }

  static async open(port: number): Promise<Connection> {
    const connection = new Connection(port);
    await once(connection.#socket, 'connect');
    return connection;
  }

  /** Sends the request again after each response, while `mayGoOn` returns true. */
  sendAll(request: Buffer, mayGoOn: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      let begun: Buffer | null = null;
      const sendNext = (): void => {
        if (mayGoOn()) this.#socket.write(request);
        else resolve();
      };
      this.#onBytes = (bytes) => {
        const received = begun === null ? bytes : Buffer.concat([begun, bytes]);
        try {
          const length = answerLength(received);
          const isWhole = length !== null && received.length >= length;
          begun = isWhole ? null : Buffer.from(received);
          if (isWhole) sendNext();
        } catch (error) {
          reject(error as Error);
        }
      };
      this.#socket.on('error', reject);
      this.#socket.on('close', () => reject(new Error('the connection was closed')));
      sendNext();
    });
  }

  close(): void {
    this.#socket.destroy();
  }
}

if (import.meta.main) {
  takeOrder<InteractionJob, Timed>(async ({ target, connections: count, requests }) => {
    const request = requestBytes(target);
    const connections = await Promise.all(Array.from({ length: count }, () => Connection.open(target.port)));
    return async () => {
      const startedAtMs = performance.now();
      let left = requests;
      await Promise.all(connections.map((connection) => connection.sendAll(request, () => left-- > 0)));
      const elapsedMs = performance.now() - startedAtMs;
      for (const connection of connections) connection.close();
      return { count: requests, elapsedMs };
    };
  });
}
