// Lets organisations take turns on the serving thread. In each turn of the event loop, Node accepts one new connection
// and reads from all connections on which data has arrived. If all requests in this data were handled at once, a client
// with hundreds of connections would make other clients wait for seconds.

import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { FairQueue } from '../../fair-queue.ts';
import { continueParsing, stopParsing, unfinishedResponses } from './connection-state.ts';
import type { Owner } from './owner.ts';

/** The longest time for which requests are handled in one turn of the event loop. */
const TURN_MS = 4;
/**
 * The most waiting requests that are handled in a turn in which a connection was accepted. Such a turn ends early,
 * because usually more new connections are waiting, and each turn accepts only one.
 */
const REQUESTS_AFTER_ACCEPTING = 2;

interface WaitingRequest {
  readonly owner: Owner;
  readonly socket: Socket;
  handle(): void;
}

export class ServingTurns {
  readonly #waiting = new FairQueue<WaitingRequest, Owner>();
  /** The requests of each connection that wait for the response to an earlier request on the same connection. */
  readonly #behind = new WeakMap<Socket, WaitingRequest[]>();
  #isTurnEndDue = false;
  #turnStartedAtMs = 0;
  #hasAccepted = false;

  constructor(server: Server) {
    server.on('connection', () => {
      this.#hasAccepted = true;
    });
  }

  /**
   * Calls `handle` now, or when the owner of the request has its turn. Does not call it if the connection can no longer
   * send a response. The requests of one connection are handled one after the other. Otherwise a later request could
   * hold a slot for which an earlier request waits, although its own response can only be sent after that of the earlier
   * request. Meanwhile nothing more is read from the connection, because bodies of waiting requests are counted nowhere.
   */
  take(socket: Socket, ownerOf: () => Owner, handle: () => void): void {
    this.#beginTurn();
    if (unfinishedResponses(socket) > 1) {
      const behind = this.#behind.get(socket) ?? [];
      behind.push({ owner: ownerOf(), socket, handle });
      this.#behind.set(socket, behind);
      stopParsing(socket);
    } else if (this.#waiting.size === 0 && this.#hasTime()) {
      handle();
    } else {
      const owner = ownerOf();
      this.#waiting.push(owner, { owner, socket, handle });
    }
  }

  /** Queues the next request of the connection. Call this when a response on the connection has ended. */
  responded(socket: Socket): void {
    if (socket.destroyed) return;
    const behind = this.#behind.get(socket);
    const next = behind?.shift();
    if (next === undefined) return;
    if (behind!.length === 0) continueParsing(socket);
    this.#waiting.push(next.owner, next);
    this.#beginTurn();
  }

  #beginTurn(): void {
    if (this.#isTurnEndDue) return;
    this.#isTurnEndDue = true;
    this.#turnStartedAtMs = performance.now();
    setImmediate(() => this.#endTurn());
  }

  #hasTime(): boolean {
    return performance.now() - this.#turnStartedAtMs < TURN_MS;
  }

  #endTurn(): void {
    this.#turnStartedAtMs = performance.now();
    let handled = 0;
    while (this.#waiting.size > 0 && this.#hasTime()) {
      if (this.#hasAccepted && handled === REQUESTS_AFTER_ACCEPTING) break;
      if (this.#handleNext()) handled++;
    }
    this.#hasAccepted = false;
    this.#isTurnEndDue = this.#waiting.size > 0;
    if (this.#isTurnEndDue) setImmediate(() => this.#endTurn());
  }

  /** Handles the next waiting request. Returns false if the connection of the request can send no response. */
  #handleNext(): boolean {
    const { owner, socket, handle } = this.#waiting.shift()!;
    if (!socket.writable) return false;
    const startedAtMs = performance.now();
    handle();
    this.#waiting.charge(owner, performance.now() - startedAtMs);
    return true;
  }
}
