// Lets organisations take turns on the serving thread. In each turn of the event loop Node accepts one new connection and
// reads from all that have sent something. If all of their requests were handled at once, a client with hundreds of
// connections would make other clients wait for seconds.

import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { FairQueue } from '../../fair-queue.ts';
import { unfinishedResponses } from './connection-state.ts';

/** Requests are handled for this long before the next turn of the event loop. */
const TURN_MS = 4;
/** A new connection is seldom the only one that waits, so its turn ends after this many requests. */
const REQUESTS_AFTER_ACCEPTING = 2;

interface WaitingRequest {
  readonly owner: number;
  readonly socket: Socket;
  handle(): void;
}

export class ServingTurns {
  readonly #waiting = new FairQueue<WaitingRequest>();
  /** Requests that wait for the response to an earlier one on their connection. */
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
   * Calls `handle` now, or when the owner of the request has its turn; not at all if the connection is gone by then. The
   * requests of a connection are handled one after the other, because a response that cannot be sent before an earlier
   * one would hold what the earlier one waits for, such as a slot.
   */
  take(socket: Socket, ownerOf: () => number, handle: () => void): void {
    this.#beginTurn();
    if (unfinishedResponses(socket) > 1) {
      const behind = this.#behind.get(socket) ?? [];
      behind.push({ owner: ownerOf(), socket, handle });
      this.#behind.set(socket, behind);
    } else if (this.#waiting.size === 0 && this.#hasTime()) {
      handle();
    } else {
      const owner = ownerOf();
      this.#waiting.push(owner, { owner, socket, handle });
    }
  }

  /** Lets the next request of the connection have its turn. Call it when a response has ended. */
  responded(socket: Socket): void {
    if (socket.destroyed) return;
    const next = this.#behind.get(socket)?.shift();
    if (next === undefined) return;
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

  /** Returns false if the connection of the request is gone. */
  #handleNext(): boolean {
    const { owner, socket, handle } = this.#waiting.shift()!;
    if (socket.destroyed) return false;
    const startedAtMs = performance.now();
    handle();
    this.#waiting.charge(owner, performance.now() - startedAtMs);
    return true;
  }
}
