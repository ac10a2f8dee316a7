// Limits how many large bodies are read at once. Organisations take turns, and the bodies of one organisation are read
// in the order in which they arrived. While enough of an organisation's bodies are in memory to keep the ingest thread
// busy, its other large bodies are not read. They wait at the clients instead of in memory.

import type { OrganisationNumber } from '../../store/rows.ts';

/** A body up to this cost is read without a turn, so that small requests never wait for large ones. */
export const READ_AT_ONCE_BYTES = 128 * 1024;
/** What a chunk of a body costs besides its bytes: a chunk of one byte takes as long as a kilobyte in a large chunk. */
export const CHUNK_COST_BYTES = 1024;
const MOST_READ_AT_A_TIME = 2;
/** An organisation gets no further turn while its large bodies that wait for their response have this many bytes. */
const ENOUGH_READ_BYTES = 8 * 1024 * 1024;
/**
 * How often the speed of a client is checked. A client that sends less than `LEAST_COST_PER_PERIOD_BYTES` in a period
 * is slow: its body is still read, but the turn goes to the next body.
 */
const PERIOD_MS = 20;
const LEAST_COST_PER_PERIOD_BYTES = 64 * 1024;
/** After this time a turn ends if another organisation is waiting. Reading resumes in the organisation's next turn. */
const LONGEST_TURN_MS = 100;

export interface BodyReader {
  readonly organisation: OrganisationNumber;
  /** Returns the cost of what has arrived of the body: its bytes, and `CHUNK_COST_BYTES` for each chunk. */
  costBytes(): number;
  /** Called when the turn of this body has come. The body may then be read until `wait` is called. */
  readOn(): void;
  /** Called when the turn has ended before the body, because another organisation waits. */
  wait(): void;
}

export class ReadingTurns {
  /** The readers that wait for a turn. The organisation whose turn is next comes first. */
  readonly #waiting = new Map<OrganisationNumber, Set<BodyReader>>();
  readonly #reading = new Map<BodyReader, NodeJS.Timeout>();
  readonly #readBytes = new Map<OrganisationNumber, number>();

  /** The number of readers that wait for their turn. */
  get waiting(): number {
    let waiting = 0;
    for (const ofOne of this.#waiting.values()) waiting += ofOne.size;
    return waiting;
  }

  /** Returns true if the reader may continue at once. Otherwise the reader's `readOn` is called when it may. */
  begin(reader: BodyReader): boolean {
    const ofOne = this.#waiting.get(reader.organisation);
    if (ofOne === undefined && this.#hasRoom(reader.organisation)) {
      this.#start(reader);
      return true;
    }
    this.#waiting.set(reader.organisation, (ofOne ?? new Set()).add(reader));
    return false;
  }

  /**
   * Ends a reader's turn, or its wait for a turn. `reader` is null if the body was small and needed no turn.
   * `readBytes` is the size of the body, which counts until `responseMade` is called. It is 0 if the body is not read
   * completely.
   */
  end(reader: BodyReader | null, readBytes: number): void {
    if (reader !== null) {
      clearTimeout(this.#reading.get(reader));
      this.#reading.delete(reader);
      this.#leave(reader);
      if (readBytes > READ_AT_ONCE_BYTES) this.#count(reader.organisation, readBytes);
    }
    this.#startWaiting();
  }

  /**
   * Stops counting a body, because its response is made. Bodies that needed no turn were never counted, so that small
   * bodies cannot delay large ones.
   */
  responseMade(organisation: OrganisationNumber, readBytes: number): void {
    if (readBytes <= READ_AT_ONCE_BYTES) return;
    this.#count(organisation, -readBytes);
    this.#startWaiting();
  }

  #count(organisation: OrganisationNumber, readBytes: number): void {
    const all = (this.#readBytes.get(organisation) ?? 0) + readBytes;
    if (all === 0) this.#readBytes.delete(organisation);
    else this.#readBytes.set(organisation, all);
  }

  #hasRoom(organisation: OrganisationNumber): boolean {
    return (
      this.#reading.size < MOST_READ_AT_A_TIME && (this.#readBytes.get(organisation) ?? 0) < ENOUGH_READ_BYTES
    );
  }

  #startWaiting(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const { organisation } = next;
      this.#leave(next);
      // The organisation moves to the end of the queue.
      const others = this.#waiting.get(organisation);
      this.#waiting.delete(organisation);
      if (others !== undefined) this.#waiting.set(organisation, others);
      this.#start(next);
      next.readOn();
    }
  }

  #next(): BodyReader | undefined {
    for (const [organisation, [first]] of this.#waiting) if (this.#hasRoom(organisation)) return first;
    return undefined;
  }

  #leave(reader: BodyReader): void {
    const ofOne = this.#waiting.get(reader.organisation);
    ofOne?.delete(reader);
    if (ofOne?.size === 0) this.#waiting.delete(reader.organisation);
  }

  #start(reader: BodyReader, turnStartedAtMs = performance.now()): void {
    const costBefore = reader.costBytes();
    const timer = setTimeout(() => {
      // Data that arrived while this thread was busy is handled first.
      setImmediate(() => {
        if (this.#reading.get(reader) !== timer) return;
        if (reader.costBytes() - costBefore < LEAST_COST_PER_PERIOD_BYTES) this.end(reader, 0);
        else if (performance.now() - turnStartedAtMs < LONGEST_TURN_MS || !this.#isAwaitedBeside(reader))
          this.#start(reader, turnStartedAtMs);
        else this.#interrupt(reader);
      });
    }, PERIOD_MS);
    this.#reading.set(reader, timer);
  }

  #isAwaitedBeside({ organisation }: BodyReader): boolean {
    return this.#waiting
      .keys()
      .some((other) => other !== organisation && (this.#readBytes.get(other) ?? 0) < ENOUGH_READ_BYTES);
  }

  /** The reader comes first in the next turn of its organisation, so that few of its bodies are in memory half read. */
  #interrupt(reader: BodyReader): void {
    const { organisation } = reader;
    this.#reading.delete(reader);
    const others = this.#waiting.get(organisation) ?? [];
    this.#waiting.delete(organisation);
    this.#waiting.set(organisation, new Set([reader, ...others]));
    reader.wait();
    this.#startWaiting();
  }
}
