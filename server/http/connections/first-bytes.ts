// Parses a new connection in small steps until its first request shows which organisation it belongs to. Node reads up
// to 64 KiB from a connection and parses all of it, which can take milliseconds. If hundreds of new connections did that
// before it is known who they are, every other new connection would wait for all of them.

import type { Socket } from 'node:net';

/** Enough for the head of most requests, and for a small body. */
const STEP_BYTES = 1024;

const isWanted = Symbol('whether the rest is wanted');

/** The index of the parser's callback for the end of the bytes that were read directly. */
const END_OF_CHUNK = 5;

interface Parser {
  [END_OF_CHUNK]?: ((...args: unknown[]) => unknown) | null;
  _consumed?: boolean;
  execute?(bytes: Buffer): unknown;
  consume(handle: object): void;
}

export interface SteppedSocket extends Socket {
  readonly parser?: Parser | null;
  /** Node's handle. `reading` is false while the connection is paused for another reason. */
  readonly _handle?: { _consumed?: boolean; reading: boolean; readStart(): void; readStop(): void } | null;
  /** False if the connection was paused for another reason while it keeps a rest. */
  [isWanted]?: boolean;
}

/** Call this before Node's own listener for a new connection. Otherwise Node would parse all that it reads. */
export function parseInSteps({ _handle: handle }: SteppedSocket): void {
  if (handle) handle._consumed = true;
}

/**
 * Parses the first step of what is read, and keeps the rest until `continueSteps`. Calls `onRest` if there is a rest.
 * When `isKnown` returns true, the rest is parsed as a whole, and afterwards Node parses all that it reads. Calls `onRead`
 * for everything that is read, which with TLS is a record.
 */
export function limitSteps(
  socket: SteppedSocket,
  isKnown: () => boolean,
  onRest: () => void,
  onRead: () => void,
): void {
  const parser = socket.parser!;
  const restore = (): void => {
    if (parser.execute === parseStep) delete parser.execute;
  };
  const parseStep = (bytes: Buffer): unknown => {
    // Node keeps parsers for later connections, also for those that it opens as a client. After CONNECT, it does so
    // before this connection is closed.
    if (socket.parser !== parser) return execute(bytes);
    const step = isKnown() ? bytes : bytes.subarray(0, STEP_BYTES);
    const isWhole = step.length === bytes.length;
    const isLast = isWhole && isKnown();
    const result = execute(step);
    if (socket.parser !== parser || socket.destroyed) return result;
    if (!isWhole) {
      keep(socket, bytes.subarray(step.length));
      onRest();
    } else if (isLast && socket.readableLength === 0 && socket._handle) {
      restore();
      parser._consumed = true;
      callAtEnd(parser, onRead);
      parser.consume(socket._handle);
    }
    // The organisation may be known only now, and a connection waits in the line of its organisation.
    onRead();
    return result;
  };
  delete parser.execute;
  const execute = parser.execute!.bind(parser);
  parser.execute = parseStep;
  socket.once('close', restore);
}

/** Node replaces its callback when it uses the parser for another connection. */
function callAtEnd(parser: Parser, onRead: () => void): void {
  const { [END_OF_CHUNK]: onEnd } = parser;
  parser[END_OF_CHUNK] = (...args) => {
    onRead();
    return onEnd?.apply(parser, args);
  };
}

function keep(socket: SteppedSocket, rest: Buffer): void {
  socket[isWanted] = socket.readableFlowing === true;
  socket.pause();
  socket.unshift(rest);
  // Otherwise Node would go on reading into the stream.
  if (socket._handle) socket._handle.reading = true;
  // A handler that begins to read a body resumes the connection.
  socket.pause = () => {
    socket[isWanted] = false;
    return socket;
  };
  socket.resume = () => {
    socket[isWanted] = true;
    return socket;
  };
}

/** Lets the next step be parsed, unless the connection is paused for another reason. */
export function continueSteps(socket: SteppedSocket): void {
  const { _handle: handle } = socket;
  Reflect.deleteProperty(socket, 'pause');
  Reflect.deleteProperty(socket, 'resume');
  if (!handle) return;
  if (socket[isWanted]) {
    socket.resume();
    handle.readStart();
  } else {
    // Whoever resumes the connection also makes Node read from it again.
    handle.reading = false;
  }
}
