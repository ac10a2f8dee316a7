// Limits how long the serving thread reads from connections in one turn of the event loop. In each turn, Node reads from
// all connections on which data has arrived. If 1000 connections each have 64 KiB of small chunks, that takes seconds.
// After `TURN_MS`, the other connections are read in later turns, a few in each. Organisations take turns.

import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { FairQueue } from '../../fair-queue.ts';

const TURN_MS = 10;
/** Few, because the cost of reading from a connection is known only afterwards. */
const CONNECTIONS_PER_TURN = 4;
/**
 * Node accepts one connection in each turn. Waiting connections are not read before all new ones are accepted, or this
 * many. Otherwise a new connection would wait until all that were opened before it are read.
 */
const MOST_ACCEPTED_IN_A_ROW = 50;

/** The owner of connections that have had no response yet. It is negative, because organisations have positive numbers. */
const NO_OWNER_YET = -3;

/**
 * HTTP allows empty lines before a request. Node's parser skips them and reports nothing, so they would be read without a
 * limit. A connection that has sent this many bytes without a request or a piece of a body is closed. A head can have 16
 * KiB, and Node reads 64 KiB at a time.
 */
const MOST_BYTES_OF_NOTHING = 128 * 1024;
const LOOK_FOR_NOTHING_EVERY_MS = 50;

const owner = Symbol('owner');
const bytesAtData = Symbol('bytes read when data last arrived');

interface HttpSocket extends Socket {
  /** The organisation that has sent the last request. Undefined if the connection was never read. */
  [owner]?: number;
  [bytesAtData]?: number;
  /** Node's handle. `reading` is false while the connection is paused for another reason. */
  readonly _handle?: { readonly reading: boolean; readStart(): void; readStop(): void } | null;
}

export class ReadLimit {
  readonly #notWaiting = new Set<HttpSocket>();
  readonly #waiting = new FairQueue<HttpSocket>();
  /** The connections that wait and were never read, the oldest first. */
  readonly #newWaiting: HttpSocket[] = [];
  /** The connections that were resumed for this turn and are not read yet. They must not wait again before that. */
  readonly #unread = new Set<HttpSocket>();
  #isTurnEndDue = false;
  #turnStartedAtMs = 0;
  #isTimeOver = false;
  #hasAccepted = false;
  #acceptedInARow = 0;

  constructor(server: Server) {
    server.on('connection', () => {
      this.#hasAccepted = true;
      this.#acceptedInARow++;
    });
    server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: HttpSocket) => {
      this.#notWaiting.add(socket);
      socket.once('close', () => this.#notWaiting.delete(socket));
      this.#postponeTimeout(socket);
      this.#stop(socket);
      if (!this.#isTurnEndDue) this.#beginTurn();
    });
    const looking = setInterval(() => {
      for (const socket of this.#notWaiting) endIfNothing(socket);
    }, LOOK_FOR_NOTHING_EVERY_MS).unref();
    server.once('close', () => clearInterval(looking));
  }

  /**
   * Call this after a response. The connection then waits in the line of the organisation that has sent the request. A
   * later request without an organisation, such as a health check, does not change that.
   */
  responded(socket: HttpSocket, organisation: number): void {
    if (organisation > 0 || (socket[owner] ?? 0) <= 0) socket[owner] = organisation;
  }

  /** Call this for every request whose head has arrived, for every piece of a body, and for data that is not HTTP. */
  dataArrived(from: HttpSocket): void {
    from[owner] ??= NO_OWNER_YET;
    from[bytesAtData] = from.bytesRead;
    this.#unread.delete(from);
    if (!this.#isTurnEndDue) this.#beginTurn();
    if (!this.#isTimeOver && performance.now() - this.#turnStartedAtMs > TURN_MS) {
      this.#isTimeOver = true;
      for (const socket of this.#notWaiting) if (!this.#unread.has(socket)) this.#stop(socket);
    }
    if (this.#isTimeOver && this.#notWaiting.has(from)) this.#stop(from);
  }

  #beginTurn(): void {
    this.#isTurnEndDue = true;
    this.#isTimeOver = false;
    this.#turnStartedAtMs = performance.now();
    setImmediate(() => this.#endTurn());
  }

  #endTurn(): void {
    this.#isTurnEndDue = false;
    for (const socket of this.#unread) endIfNothing(socket);
    this.#unread.clear();
    const isAccepting = this.#hasAccepted && this.#acceptedInARow < MOST_ACCEPTED_IN_A_ROW;
    this.#hasAccepted = false;
    if (!isAccepting) this.#acceptedInARow = 0;
    // Organisations have their place in every turn. Otherwise an open connection would wait for fifty turns for each of
    // the connections of its organisation, even if those have no data.
    const places = !isAccepting ? CONNECTIONS_PER_TURN : this.#waiting.size > 0 ? 1 : 0;
    for (let place = 0; place < places; place++) this.#resumeNext(place);
    if (this.#waiting.size + this.#newWaiting.length + this.#unread.size > 0) this.#beginTurn();
  }

  /**
   * Restarts the connection's timeout if it ends while the connection waits to be read. Otherwise a client whose data
   * has arrived would be considered stalled.
   */
  #postponeTimeout(socket: HttpSocket): void {
    const [endStalled] = socket.listeners('timeout') as [() => void];
    socket.removeListener('timeout', endStalled).on('timeout', () => {
      const isWaiting = !this.#notWaiting.has(socket) || this.#unread.has(socket);
      if (isWaiting) socket.setTimeout(socket.timeout ?? 0);
      else endStalled.call(socket);
    });
  }

  #stop(socket: HttpSocket): void {
    if (!socket._handle?.reading) return;
    socket._handle.readStop();
    this.#notWaiting.delete(socket);
    const { [owner]: known } = socket;
    if (known === undefined) this.#newWaiting.push(socket);
    else this.#waiting.push(known, socket);
  }

  /**
   * Resumes one connection: an organisation's for the first place of a turn, the newest of the new ones for the second,
   * the oldest for the others. The newest usually waits for nobody. The oldest get most places, so that none waits long.
   */
  #resumeNext(place: number): void {
    const next = place === 0 ? undefined : place === 1 ? this.#newWaiting.pop() : this.#newWaiting.shift();
    const socket = next ?? this.#waiting.shift() ?? this.#newWaiting.shift();
    if (socket === undefined) return;
    if (socket[owner] !== undefined) this.#waiting.charge(socket[owner], 1);
    if (socket.destroyed) return;
    this.#notWaiting.add(socket);
    this.#unread.add(socket);
    if (socket._handle?.reading) socket._handle.readStart();
  }
}

function endIfNothing(socket: HttpSocket): void {
  if (socket.bytesRead - (socket[bytesAtData] ?? 0) > MOST_BYTES_OF_NOTHING) socket.destroy();
}
