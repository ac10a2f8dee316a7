// Limits how long the serving thread reads from connections in one turn of the event loop. In each turn, Node reads from
// all connections on which data has arrived. If 1000 connections each have 64 KiB of small chunks, that takes seconds.
// After `TURN_MS`, the other connections are read in later turns, a few in each. Organisations take turns.

import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { FairQueue } from '../../fair-queue.ts';

const TURN_MS = 10;
/** Few, because the cost of reading from a connection is known only afterwards. */
const CONNECTIONS_PER_TURN = 10;
/**
 * Node accepts one connection in each turn. Waiting connections are not read before all new ones are accepted, or this
 * many. Otherwise a new connection would wait until all that were opened before it are read.
 */
const MOST_ACCEPTED_IN_A_ROW = 50;

const owner = Symbol('owner');

interface HttpSocket extends Socket {
  [owner]?: number;
  /** Node's handle. `reading` is false while the connection is paused for another reason. */
  readonly _handle?: { readonly reading: boolean; readStart(): void; readStop(): void } | null;
}

export class ReadLimit {
  /** The connections that do not wait. */
  readonly #reading = new Set<HttpSocket>();
  readonly #waiting = new FairQueue<HttpSocket>();
  /** The connections that wait and have had no response yet, the oldest first. Their organisations are not known. */
  readonly #newWaiting: HttpSocket[] = [];
  #isTurnEndDue = false;
  #turnStartedAtMs = 0;
  #hasAccepted = false;
  #acceptedInARow = 0;

  constructor(server: Server) {
    server.on('connection', () => {
      this.#hasAccepted = true;
      this.#acceptedInARow++;
    });
    server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: HttpSocket) => {
      this.#reading.add(socket);
      socket.once('close', () => this.#reading.delete(socket));
      this.#stop(socket);
      if (!this.#isTurnEndDue) this.#beginTurn();
    });
  }

  /** Call this after a response. The connection then waits in the line of the organisation that has sent the request. */
  responded(socket: HttpSocket, organisation: number): void {
    socket[owner] = organisation;
  }

  /** Call this for every request whose head has arrived, and for every piece of a body. */
  dataArrived(): void {
    if (!this.#isTurnEndDue) this.#beginTurn();
    else if (performance.now() - this.#turnStartedAtMs > TURN_MS) {
      for (const socket of this.#reading) this.#stop(socket);
    }
  }

  #beginTurn(): void {
    this.#isTurnEndDue = true;
    this.#turnStartedAtMs = performance.now();
    setImmediate(() => this.#endTurn());
  }

  #endTurn(): void {
    this.#isTurnEndDue = false;
    const isAccepting = this.#hasAccepted && this.#acceptedInARow < MOST_ACCEPTED_IN_A_ROW;
    this.#hasAccepted = false;
    if (!isAccepting) {
      this.#acceptedInARow = 0;
      for (let place = 0; place < CONNECTIONS_PER_TURN; place++) this.#resumeNext(place);
    }
    if (this.#waiting.size + this.#newWaiting.length > 0) this.#beginTurn();
  }

  #stop(socket: HttpSocket): void {
    if (!socket._handle?.reading) return;
    socket._handle.readStop();
    this.#reading.delete(socket);
    const { [owner]: known } = socket;
    if (known === undefined) this.#newWaiting.push(socket);
    else this.#waiting.push(known, socket);
  }

  /**
   * Resumes an organisation's connection, the newest of the new ones, or the oldest, in turn. The newest usually waits
   * for nobody, and the oldest wait no longer than until those before them are read.
   */
  #resumeNext(place: number): void {
    const next =
      place % 3 === 1 ? this.#newWaiting.pop() : place % 3 === 2 ? this.#newWaiting.shift() : undefined;
    const socket = next ?? this.#waiting.shift() ?? this.#newWaiting.shift();
    if (socket === undefined) return;
    if (socket[owner] !== undefined) this.#waiting.charge(socket[owner], 1);
    if (socket.destroyed) return;
    this.#reading.add(socket);
    if (socket._handle?.reading) socket._handle.readStart();
  }
}
