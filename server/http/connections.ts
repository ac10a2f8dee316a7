// Knows which connections wait for the server and which for their client, so that a stop waits for the former only, and
// no connection stays open after its last answer.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const SWEEP_EVERY_MS = 50;
/** The time that a client may take, during a stop, without sending or reading a byte. */
const LONGEST_STALL_MS = 5000;
/** The time that a client has to read the last answer: data that arrive after the close could destroy it on its way. */
const LINGER_MS = 2000;

const unfinished = Symbol('unfinished responses');
const answeredEarly = Symbol('request that was answered before its end');

interface HttpSocket extends Socket {
  /** More than one if the client sends requests without waiting for answers. */
  [unfinished]?: Set<ServerResponse>;
  [answeredEarly]?: IncomingMessage;
}

export function responseBegan(socket: HttpSocket, response: ServerResponse): void {
  socket[unfinished] ??= new Set();
  socket[unfinished].add(response);
}

/** For a response that was sent to its end, or whose connection was closed. */
export function responseEnded(socket: HttpSocket, response: ServerResponse): void {
  socket[unfinished]?.delete(response);
  if (!response.req.complete) socket[answeredEarly] = response.req;
}

/** Returns how many requests on the connection have begun and are not over. */
export function unfinishedResponses(socket: HttpSocket): number {
  return socket[unfinished]?.size ?? 0;
}

/** Returns whether a request on the connection has begun and is not over. */
export function isInRequest(socket: HttpSocket): boolean {
  return someResponse(socket, () => true);
}

/** Returns the last response that is made, or is due to a request which has arrived as a whole, and is not sent. */
export function lastResponseDue(socket: HttpSocket): ServerResponse | undefined {
  return [...(socket[unfinished] ?? [])].findLast(
    ({ req, writableEnded, writableFinished }) => (req.complete || writableEnded) && !writableFinished,
  );
}

/** Returns whether the request that is arriving has its response, such as a refusal, already. */
export function isAnsweredEarly(socket: HttpSocket): boolean {
  if (socket[answeredEarly]?.complete === false) return true;
  return someResponse(socket, ({ req, writableEnded }) => !req.complete && writableEnded);
}

/** Sends the last bytes of a connection, and closes it when the client has done so, or after a while. */
export function endConnection(socket: Socket, lastBytes: string): void {
  const lingering = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(lingering)).end(lastBytes);
}

/**
 * Lets a client that has sent its last request close its side and still get the answer. Node would close the other side
 * at once, although it had handed the request to its handler.
 */
export function answerHalfClosed(server: Server): void {
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
  // Not before the handshake is done: an unfinished one would stay open after the client has left.
  server.on('secureConnection', (socket: Socket) => {
    socket.allowHalfOpen = true;
  });
}

/** How a stop went on. */
export interface Closing {
  /** Connections that were closed because of their clients, with a request or an answer under way. */
  readonly cut: number;
}

/**
 * Returns a function that starts to close the connections of a server that takes no new ones.
 * - Connections without a request are closed as soon as they are.
 * - What was accepted, that is, has arrived as a whole, is finished.
 * - Clients that stall while they send a request or read an answer are cut off. Shortly before `timeoutMs` have passed,
 *   so are those that are only slow.
 */
export function connectionCloser(server: Server, isTls: boolean): (timeoutMs: number) => Closing {
  const open = new Map<Socket, Tracked>();
  server.on('connection', (tcp) => {
    open.set(tcp, { tcp, http: isTls ? null : tcp, bytesRead: 0, bytesSent: 0, waitedMs: 0 });
    tcp.once('close', () => open.delete(tcp));
  });
  server.on('secureConnection', (http: Socket & { readonly _parent?: Socket }) => {
    const connection = http._parent && open.get(http._parent);
    if (connection !== undefined) connection.http = http;
  });

  // Node calls this, too. It considers a connection idle when its response is made, and would cut the response off.
  const closeIdleConnections = server.closeIdleConnections.bind(server);
  server.closeIdleConnections = () => {
    const isSending = ({ http }: Tracked): boolean =>
      http !== null && someResponse(http, ({ writableEnded }) => writableEnded);
    if (!open.values().some(isSending)) closeIdleConnections();
  };

  return (timeoutMs) => {
    const closing = { cut: 0 };
    const stallMs = Math.min(LONGEST_STALL_MS, timeoutMs / 4);
    const lastCallAtMs = performance.now() + timeoutMs - stallMs;

    const sweep = (): void => {
      server.closeIdleConnections();
      const isLastCall = performance.now() >= lastCallAtMs;
      for (const connection of open.values()) {
        const { tcp, http } = connection;
        const hasMoved = noteProgress(connection);
        if (http === null || http.bytesRead === 0) {
          tcp.destroy();
        } else if (someResponse(http, isAccepted) || (!isLastCall && (hasMoved || keepsWaiting(http)))) {
          connection.waitedMs = 0;
        } else {
          connection.waitedMs += SWEEP_EVERY_MS;
          if (connection.waitedMs <= (isLastCall ? SWEEP_EVERY_MS : stallMs)) continue;
          closing.cut++;
          http.destroy();
        }
      }
    };
    const sweeping = setInterval(sweep, SWEEP_EVERY_MS);
    server.once('close', () => clearInterval(sweeping));
    return closing;
  };
}

interface Tracked {
  readonly tcp: Socket;
  /** Carries the requests: the connection itself, or TLS over it; null until the handshake is done. */
  http: HttpSocket | null;
  bytesRead: number;
  bytesSent: number;
  /** How long the server has waited for the client. Counted by sweeps: a server that was busy has not waited. */
  waitedMs: number;
}

/** Returns whether the client has sent or read anything since the last call. */
function noteProgress(connection: Tracked): boolean {
  const { bytesRead } = connection.tcp;
  const bytesSent = sentBytes(connection.tcp);
  const hasMoved = bytesRead !== connection.bytesRead || bytesSent !== connection.bytesSent;
  connection.bytesRead = bytesRead;
  connection.bytesSent = bytesSent;
  return hasMoved;
}

/** What the kernel has taken of what was written. What Node shows publicly changes only when a whole write is done. */
export function sentBytes(socket: Socket): number {
  const tcp = (socket as { readonly _parent?: Socket })._parent ?? socket;
  const { _handle: handle } = tcp as {
    readonly _handle?: { readonly bytesWritten?: number; readonly writeQueueSize?: number } | null;
  };
  return (handle?.bytesWritten ?? 0) - (handle?.writeQueueSize ?? 0);
}

/** The request has arrived as a whole, and the server has not made the whole response although it could. */
function isAccepted({ req, writableEnded, writableNeedDrain }: ServerResponse): boolean {
  return req.complete && !writableEnded && !writableNeedDrain;
}

/** The server has not begun to read a body, or lets the client wait until there is room for it. */
function keepsWaiting(socket: HttpSocket): boolean {
  return someResponse(
    socket,
    ({ req, writableEnded }) => !req.complete && req.readableFlowing !== true && !writableEnded,
  );
}

function someResponse(socket: HttpSocket, isSo: (response: ServerResponse) => boolean): boolean {
  return socket[unfinished]?.values().some(isSo) ?? false;
}
