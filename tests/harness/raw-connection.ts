// A connection whose every byte and pause a test decides, for slow, cut, pipelined and refused requests, which a
// client library would hide.

import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

export interface RawAnswer {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
  readonly text: string;
}

export interface RawRequest {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Its length is in the headers, whether or not it is sent at once. */
  readonly body?: string | Uint8Array;
}

export interface RawConnection {
  write(bytes: string | Uint8Array): void;
  /** Sends a whole request. */
  send(request: RawRequest): void;
  /**
   * Sends a request without the last byte of its body. Resolves when the server has read the headers, to a function
   * that sends the last byte.
   */
  sendAllButTheLastByte(request: RawRequest & { readonly body: string }): Promise<() => void>;
  /** Resolves to the next response; rejects if the connection ends before it is complete. */
  answer(to?: { readonly isHead: boolean }): Promise<RawAnswer>;
  /** Closes the sending side and keeps reading. */
  endSending(): void;
  /** Resolves when the other side has ended the connection. */
  readonly ended: Promise<void>;
  destroy(): void;
  /** Resets the connection, so that the server knows that nothing is read any more; `destroy` does not show that. */
  reset(): void;
}

const ANSWER_TIMEOUT_MS = 30_000;
const CONTINUE_STATUS = 100;
const headEnd = Buffer.from('\r\n\r\n');

/** `ca` is the certificate to trust if the URL is https. */
export async function connectRaw(url: string, ca?: Buffer): Promise<RawConnection> {
  const { protocol, hostname, port, host } = new URL(url);
  const place = { host: hostname, port: Number(port) };
  const socket: Socket =
    protocol === 'https:' ? connectTls({ ...place, ...(ca === undefined ? {} : { ca }) }) : connectTcp(place);
  let received: Buffer = Buffer.alloc(0);
  let hasEnded = false;
  let failure: Error | null = null;
  let wake = (): void => {};
  const ended = Promise.withResolvers<void>();
  const end = (): void => {
    hasEnded = true;
    ended.resolve();
    wake();
  };
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    wake();
  });
  socket.on('end', end).on('close', end);
  socket.on('error', (error) => {
    failure = error;
    end();
  });

  const until = async <T>(look: () => T | null): Promise<T> => {
    const deadlineMs = performance.now() + ANSWER_TIMEOUT_MS;
    for (;;) {
      const found = look();
      if (found !== null) return found;
      if (hasEnded)
        throw new Error(`the connection ended before the answer: ${received}`, { cause: failure });
      const leftMs = deadlineMs - performance.now();
      if (leftMs <= 0) throw new Error(`no whole answer came in time: ${received}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  };

  const takeAnswer = (isHead: boolean): RawAnswer | null => {
    const headLength = received.indexOf(headEnd);
    if (headLength === -1) return null;
    const [statusLine = '', ...lines] = received.subarray(0, headLength).toString('latin1').split('\r\n');
    const headers = new Map(
      lines.map((line) => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
      }),
    );
    const status = Number(statusLine.split(' ')[1]);
    const bodyStart = headLength + headEnd.length;
    const hasNoBody = isHead || status === CONTINUE_STATUS;
    const bodyLength = hasNoBody ? 0 : Number(headers.get('content-length') ?? Number.NaN);
    if (Number.isNaN(bodyLength)) throw new Error(`the answer does not tell its length: ${received}`);
    if (received.length < bodyStart + bodyLength) return null;
    const text = received.subarray(bodyStart, bodyStart + bodyLength).toString();
    received = received.subarray(bodyStart + bodyLength);
    return { status, headers, text };
  };

  await new Promise<void>((resolve, reject) => {
    socket.once(protocol === 'https:' ? 'secureConnect' : 'connect', resolve).once('error', reject);
  });

  const headOf = ({ method, path, headers = {}, body }: RawRequest): string => {
    const all = {
      Host: host,
      ...(body === undefined
        ? {}
        : { 'Content-Type': 'application/json', 'Content-Length': String(Buffer.byteLength(body)) }),
      ...headers,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    return `${method ?? (body === undefined ? 'GET' : 'POST')} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
  };

  return {
    write: (bytes) => void socket.write(bytes),
    send(request) {
      socket.write(headOf(request), 'latin1');
      if (request.body !== undefined) socket.write(request.body);
    },
    async sendAllButTheLastByte(request) {
      const body = Buffer.from(request.body);
      const headers = { ...request.headers, Expect: '100-continue' };
      socket.write(headOf({ ...request, headers }), 'latin1');
      const { status, text } = await until(() => takeAnswer(false));
      if (status !== CONTINUE_STATUS) throw new Error(`the server does not want the body: ${status} ${text}`);
      socket.write(body.subarray(0, -1));
      return () => void socket.write(body.subarray(-1));
    },
    answer: ({ isHead } = { isHead: false }) => until(() => takeAnswer(isHead)),
    endSending: () => void socket.end(),
    ended: ended.promise,
    destroy: () => void socket.destroy(),
    reset: () => void socket.resetAndDestroy(),
  };
}

export function bearer(key: string): Readonly<Record<string, string>> {
  return { Authorization: `Bearer ${key}` };
}
