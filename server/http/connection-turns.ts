// Lets connections take turns on the serving thread. In each turn of the event loop Node accepts one new connection and
// reads from all that have sent something. If all of their requests were handled at once, a client with hundreds of
// connections would make a new one wait for seconds.

import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { unfinishedResponses } from './connections.ts';

/** Requests are handled for so long before the next turn of the event loop. */
const TURN_MS = 4;
/** A new connection is seldom the only one that waits: after it the next turn comes after so many requests. */
const AFTER_ACCEPTING = 2;

export class ConnectionTurns {
  /** The connection that was served longest ago is first. */
  readonly #waiting = new Map<Socket, (() => void)[]>();
  #isTurnEndDue = false;
  #turnStartedAtMs = 0;
  #hasAccepted = false;

  constructor(server: Server) {
    server.on('connection', () => {
      this.#hasAccepted = true;
    });
  }

  /**
   * Calls `handle` now, or when the connection has its turn, and not at all if the connection is gone by then. A request
   * that did not wait for the answer to the one before it always waits for a turn: the rest of what was received may show
   * that the connection is to be closed.
   */
  take(socket: Socket, handle: () => void): void {
    if (!this.#isTurnEndDue) {
      this.#isTurnEndDue = true;
      this.#turnStartedAtMs = performance.now();
      setImmediate(() => this.#endTurn());
    }
    const before = this.#waiting.get(socket);
    if (this.#waiting.size === 0 && unfinishedResponses(socket) === 1 && this.#hasTime()) handle();
    else if (before === undefined) this.#waiting.set(socket, [handle]);
    else before.push(handle);
  }

  #hasTime(): boolean {
    return performance.now() - this.#turnStartedAtMs < TURN_MS;
  }

  #endTurn(): void {
    this.#turnStartedAtMs = performance.now();
    let handled = 0;
    while (this.#waiting.size > 0 && this.#hasTime()) {
      if (this.#hasAccepted && handled === AFTER_ACCEPTING) break;
      this.#handleNext();
      handled++;
    }
    this.#hasAccepted = false;
    this.#isTurnEndDue = this.#waiting.size > 0;
    if (this.#isTurnEndDue) setImmediate(() => this.#endTurn());
  }

  #handleNext(): void {
    for (const [socket, [handle, ...others]] of this.#waiting) {
      this.#waiting.delete(socket);
      if (socket.destroyed) continue;
      if (others.length > 0) this.#waiting.set(socket, others);
      handle!();
      return;
    }
  }
}
