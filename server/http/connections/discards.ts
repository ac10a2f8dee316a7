// Reads and discards the rest of bodies whose requests already have their response, for example a refusal. A client that
// is still sending would not read the response otherwise. One connection is read at a time, in small steps and with
// pauses, because a body may be endless, and may come in pieces that each take time. Organisations take turns.

import type { IncomingMessage } from 'node:http';
import { FairQueue } from '../../fair-queue.ts';
import { hasBody, pauseReading } from './connection-state.ts';
import type { Owner } from './owner.ts';

/** A step ends at this many pieces or bytes. */
const STEP_PIECES = 200;
const STEP_BYTES = 256 * 1024;
const SHORTEST_PAUSE_MS = 1;
/** The pause after a step, as a multiple of the time that the step took. */
const PAUSE_FACTOR = 2;

interface UnreadBody {
  readonly request: IncomingMessage;
  readonly owner: Owner;
}

export class Discards {
  readonly #waiting = new FairQueue<UnreadBody, Owner>();
  #isStepDue = false;

  /**
   * Call it for every request, before its body arrives. Otherwise Node would discard the rest of a body by itself, as
   * fast as the client sends.
   */
  watch(request: IncomingMessage): void {
    // After a read of zero bytes, Node no longer discards the body by itself.
    if (hasBody(request)) request.read(0);
  }

  /** Call it when the response to the request has been sent. The work is charged to `ownerOf(request)`. */
  begin(request: IncomingMessage, ownerOf: (request: IncomingMessage) => Owner): void {
    if (request.complete) {
      request.resume();
      return;
    }
    let pieces = 0;
    let bytes = 0;
    request.on('data', (piece: Buffer) => {
      pieces++;
      bytes += piece.length;
      if (pieces < STEP_PIECES && bytes < STEP_BYTES) return;
      pieces = 0;
      bytes = 0;
      pauseReading(request);
    });
    pauseReading(request);
    // A small body arrives together with its head, so Node is about to parse it. It must not wait in the line, because
    // its connection goes on with the next request, and thousands of them would wait there.
    setImmediate(() => this.#wait({ request, owner: ownerOf(request) }));
  }

  #wait(body: UnreadBody): void {
    const { request, owner } = body;
    if (request.socket.destroyed) return;
    if (request.complete) {
      // Node goes on reading from the connection, unless a later request on it has to wait.
      request.removeAllListeners('data').resume();
      return;
    }
    pauseReading(request);
    this.#waiting.push(owner, body);
    if (this.#isStepDue) return;
    this.#isStepDue = true;
    setImmediate(() => this.#step());
  }

  /** Removes and returns the next body of a connection that is still open. */
  #next(): UnreadBody | undefined {
    let next = this.#waiting.shift();
    while (next?.request.socket.destroyed) next = this.#waiting.shift();
    return next;
  }

  #step(): void {
    const next = this.#next();
    this.#isStepDue = next !== undefined;
    if (next === undefined) return;
    const { request, owner } = next;
    const startedAtMs = performance.now();
    request.resume();
    // A connection that is resumed and paused within one turn of the event loop would go on reading, so each is left to
    // a turn of its own.
    setImmediate(() => {
      if (!request.isPaused()) request.socket.resume();
      setImmediate(() =>
        setImmediate(() => {
          const tookMs = performance.now() - startedAtMs;
          this.#waiting.charge(owner, tookMs);
          this.#wait(next);
          setTimeout(() => this.#step(), Math.max(SHORTEST_PAUSE_MS, PAUSE_FACTOR * tookMs));
        }),
      );
    });
  }
}
