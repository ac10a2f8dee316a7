// Reads and discards the rest of bodies whose requests already have their response, for example a refusal. A client that
// is still sending would not read the response otherwise. One connection is read at a time, in small steps and with
// pauses, because a body may be endless, and may come in pieces that each take time.

import type { IncomingMessage } from 'node:http';
import { hasBody, pauseReading } from './connection-state.ts';

/** A step ends at this many pieces or bytes. */
const STEP_PIECES = 200;
const STEP_BYTES = 256 * 1024;
const SHORTEST_PAUSE_MS = 1;
/** The pause after a step, as a multiple of the time that the step took. */
const PAUSE_FACTOR = 2;

export class Discards {
  readonly #waiting: IncomingMessage[] = [];
  #isPumpDue = false;

  /**
   * Call it for every request, before its body arrives. Otherwise Node would discard the rest of a body by itself, as
   * fast as the client sends.
   */
  watch(request: IncomingMessage): void {
    // A read of nothing makes Node leave the body to its reader.
    if (hasBody(request)) request.read(0);
  }

  /** Call it when the response to the request has been sent. */
  begin(request: IncomingMessage): void {
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
    this.#wait(request);
  }

  #wait(request: IncomingMessage): void {
    if (request.socket.destroyed) return;
    if (request.complete) {
      request.removeAllListeners('data').resume();
      request.socket.resume();
      return;
    }
    pauseReading(request);
    this.#waiting.push(request);
    if (this.#isPumpDue) return;
    this.#isPumpDue = true;
    setImmediate(() => this.#step());
  }

  #step(): void {
    const request = this.#waiting.shift();
    this.#isPumpDue = request !== undefined;
    if (request === undefined) return;
    const startedAtMs = performance.now();
    request.resume();
    // A connection that is resumed and paused within one turn of the event loop would go on reading, so each is left to
    // a turn of its own.
    setImmediate(() => {
      if (!request.isPaused()) request.socket.resume();
      setImmediate(() =>
        setImmediate(() => {
          this.#wait(request);
          const tookMs = performance.now() - startedAtMs;
          setTimeout(() => this.#step(), Math.max(SHORTEST_PAUSE_MS, PAUSE_FACTOR * tookMs));
        }),
      );
    });
  }
}
