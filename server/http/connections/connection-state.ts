// Tracks the requests of each connection that have no complete response yet. A server that stops sends the responses
// for which clients wait, and disconnects clients that stall. No connection stays open after its last response.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const SWEEP_EVERY_MS = 50;
/** How long a client may neither send nor read a byte while the server stops. */
const LONGEST_STALL_MS = 5000;
/**
 * How long a client has to read the last response. If the connection were closed earlier while the client is still
 * sending, the client could lose the response.
 */
const LINGER_MS = 2000;

const unfinished = Symbol('unfinished responses');
const respondedEarly = Symbol('request that got its response before its end');

interface HttpSocket extends Socket {
  /** The responses that are not sent completely. There are several if the client does not wait for responses. */
  [unfinished]?: Set<ServerResponse>;
  [respondedEarly]?: IncomingMessage;
}

export function responseBegan(socket: HttpSocket, response: ServerResponse): void {
  socket[unfinished] ??= new Set();
  socket[unfinished].add(response);
}

/** Call this when a response has been sent completely, or when its connection was closed. */
export function responseEnded(socket: HttpSocket, response: ServerResponse): void {
  socket[unfinished]?.delete(response);
  if (!response.req.complete) socket[respondedEarly] = response.req;
}

/** Returns the number of requests on the connection that have begun but whose response has not ended. */
export function unfinishedResponses(socket: HttpSocket): number {
  return socket[unfinished]?.size ?? 0;
}

/** Returns the number of headers and trailers of these requests. */
export function unansweredHeaders(socket: HttpSocket): number {
  let headers = 0;
  for (const { req } of socket[unfinished] ?? [])
    headers += (req.rawHeaders.length + req.rawTrailers.length) / 2;
  return headers;
}

/** Returns whether a request on the connection has begun but its response has not ended. */
export function isInRequest(socket: HttpSocket): boolean {
  return someResponse(socket, () => true);
}

/**
 * Returns the last response that is due but not sent completely. A response is due if its request has arrived
 * completely or if the response itself is complete.
 */
export function lastResponseDue(socket: HttpSocket): ServerResponse | undefined {
  return [...(socket[unfinished] ?? [])].findLast(
    ({ req, writableEnded, writableFinished }) => (req.complete || writableEnded) && !writableFinished,
  );
}

/** Returns whether a request that is still arriving already has its response, such as a refusal. */
export function hasEarlyResponse(socket: HttpSocket): boolean {
  if (socket[respondedEarly]?.complete === false) return true;
  return someResponse(socket, ({ req, writableEnded }) => !req.complete && writableEnded);
}

/** Sends the last bytes of a connection. Closes it when the client closes its side, at the latest after `LINGER_MS`. */
export function endConnection(socket: Socket, lastBytes: string): void {
  const lingering = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(lingering)).end(lastBytes);
}

/**
 * Lets a client close its side of the connection after its last request and still get the response. By default, Node
 * closes the whole connection at once, even while a handler works on the request.
 */
export function respondToHalfClosed(server: Server): void {
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
  // This is set only after the TLS handshake. Otherwise a client that leaves during it would keep a connection open.
  server.on('secureConnection', (socket: Socket) => {
    socket.allowHalfOpen = true;
  });
}

/** The progress of a stop. */
export interface Closing {
  /** The number of connections that were closed within a request or response because the client was too slow. */
  readonly cut: number;
}

/**
 * Returns a function that starts to close the connections of a server that no longer accepts new ones.
 * - Connections without a request are closed at once.
 * - Requests that have arrived completely get their response.
 * - Clients that stall while they send a request or read a response are disconnected. Shortly before `timeoutMs` has
 *   passed, clients that are only slow are disconnected too. Then `onLastCall` is called, which must end long requests.
 */
export function connectionCloser(
  server: Server,
  isTls: boolean,
): (timeoutMs: number, onLastCall: () => void) => Closing {
  const open = new Map<Socket, Tracked>();
  server.on('connection', (tcp) => {
    open.set(tcp, { tcp, http: isTls ? null : tcp, bytesRead: 0, bytesSent: 0, waitedMs: 0 });
    tcp.once('close', () => open.delete(tcp));
  });
  server.on('secureConnection', (http: Socket & { readonly _parent?: Socket }) => {
    const connection = http._parent && open.get(http._parent);
    if (connection !== undefined) connection.http = http;
  });

  // Node calls `closeIdleConnections` too. It considers a connection idle once the response is complete, even if the
  // response is still being sent, and would cut the response off. So nothing is closed here while any response is being
  // sent.
  const closeIdleConnections = server.closeIdleConnections.bind(server);
  server.closeIdleConnections = () => {
    const isSending = ({ http }: Tracked): boolean =>
      http !== null && someResponse(http, ({ writableEnded }) => writableEnded);
    if (!open.values().some(isSending)) closeIdleConnections();
  };

  return (timeoutMs, onLastCall) => {
    const closing = { cut: 0 };
    const stallMs = Math.min(LONGEST_STALL_MS, timeoutMs / 4);
    let isLastCall = false;
    const lastCall = setTimeout(() => {
      isLastCall = true;
      onLastCall();
    }, timeoutMs - stallMs);

    const sweep = (): void => {
      server.closeIdleConnections();
      for (const connection of open.values()) {
        const { tcp, http } = connection;
        const hasMoved = noteProgress(connection);
        if (http === null || http.bytesRead === 0) {
          tcp.destroy();
        } else if (
          nextResponse(http, isAccepted) ||
          (!isLastCall && (hasMoved || nextResponse(http, keepsWaiting)))
        ) {
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
    server.once('close', () => {
      clearInterval(sweeping);
      clearTimeout(lastCall);
    });
    return closing;
  };
}

interface Tracked {
  readonly tcp: Socket;
  /** The socket for requests: the TCP socket, or the TLS socket on top of it. Null until the TLS handshake is done. */
  http: HttpSocket | null;
  bytesRead: number;
  bytesSent: number;
  /**
   * How long the server has waited for the client. It is counted in sweeps, so that the time for which the server was
   * busy does not count.
   */
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

/**
 * Returns how many bytes of the connection the kernel has accepted. Node's public counter is not used, because it
 * changes only when a whole write is done.
 */
export function sentBytes(socket: Socket): number {
  const tcp = (socket as { readonly _parent?: Socket })._parent ?? socket;
  const { _handle: handle } = tcp as {
    readonly _handle?: { readonly bytesWritten?: number; readonly writeQueueSize?: number } | null;
  };
  return (handle?.bytesWritten ?? 0) - (handle?.writeQueueSize ?? 0);
}

/**
 * Returns whether the client waits for the server: its request has arrived completely, the response is not complete,
 * and the client has read the part of the response that exists.
 */
function isAccepted({ req, writableEnded, writableNeedDrain }: ServerResponse): boolean {
  return req.complete && !writableEnded && !writableNeedDrain;
}

/** Returns whether the server keeps the client waiting: it has paused the body or has not begun to read it. */
function keepsWaiting({ req, writableEnded }: ServerResponse): boolean {
  return !req.complete && req.readableFlowing !== true && !writableEnded;
}

/** Returns whether the response that is sent next meets the condition. Later ones wait until the client has read it. */
function nextResponse(socket: HttpSocket, isSo: (response: ServerResponse) => boolean): boolean {
  const [first] = socket[unfinished] ?? [];
  return first !== undefined && isSo(first);
}

function someResponse(socket: HttpSocket, isSo: (response: ServerResponse) => boolean): boolean {
  return socket[unfinished]?.values().some(isSo) ?? false;
}

export function hasBody({ headers }: IncomingMessage): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  return length !== '0' || encoding !== undefined;
}

/**
 * Pauses a request and its connection. A paused request alone would still take in 64 KiB of its body, in however many
 * pieces.
 */
export function pauseReading(request: IncomingMessage): void {
  request.pause();
  request.socket.pause();
}

interface PausableSocket extends Socket {
  /** Node sets this while too many responses wait to be sent. While it is set, reading a body does not resume the socket. */
  _paused?: boolean;
  readonly parser?: { pause(): void; resume(): void } | null;
}

/** Stops reading from the connection after the bytes that were received already. */
export function stopParsing(socket: PausableSocket): void {
  socket._paused = true;
  // Node would pause the parser, too. Over TLS, several records can have been received at once, and a paused parser
  // refuses the next one as invalid.
  if (socket.parser) socket.parser.pause = () => {};
  socket.pause();
}

export function continueParsing(socket: PausableSocket): void {
  socket._paused = false;
  socket.parser?.resume();
  socket.resume();
}
