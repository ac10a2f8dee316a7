// Limits how many large bodies are read at once. Organisations take turns; the bodies of one organisation are read in
// the order in which they came. Reading stops while enough is read to keep the ingest thread busy, so that the rest
// waits at the clients instead of in memory.

import type { OrganisationNumber } from '../../store/rows.ts';

/** A body up to this size is read without a turn, so that small requests never wait for large ones. */
export const READ_AT_ONCE_BYTES = 128 * 1024;
const MOST_READ_AT_A_TIME = 2;
/** While an organisation has this many bytes of bodies read and without a response, it gets no further turn. */
const ENOUGH_READ_BYTES = 8 * 1024 * 1024;
/** A client that sends fewer bytes than this in a period is slow: it is read further, but its turn goes to the next. */
const PERIOD_MS = 20;
const LEAST_BYTES_PER_PERIOD = 64 * 1024;

export interface BodyReader {
  readonly organisation: OrganisationNumber;
  /** How much of the body has arrived. */
  readBytes(): number;
  /** Called when its turn has come: the body may be read to its end. */
  readOn(): void;
}

export class ReadingTurns {
  /** The organisation whose turn is next comes first. */
  readonly #waiting = new Map<OrganisationNumber, Set<BodyReader>>();
  readonly #reading = new Map<BodyReader, NodeJS.Timeout>();
  readonly #readBytes = new Map<OrganisationNumber, number>();

  /** The number of readers that wait for their turn. */
  get waiting(): number {
    let waiting = 0;
    for (const ofOne of this.#waiting.values()) waiting += ofOne.size;
    return waiting;
  }

  /** Returns true if the reader may continue at once. Otherwise its `readOn` is called when its turn has come. */
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
   * Ends a turn. `reader` is null if the body never needed one. `readBytes` is the size of the whole body, which counts
   * until `answered` is called, or 0 if the body was not read completely.
   */
  end(reader: BodyReader | null, readBytes: number): void {
    if (reader !== null) {
      clearTimeout(this.#reading.get(reader));
      this.#reading.delete(reader);
      this.#leave(reader);
      this.#count(reader.organisation, readBytes);
    }
    this.#startWaiting();
  }

  /** Stops counting a body. Bodies that needed no turn are not counted, so that small ones cannot delay large ones. */
  answered(organisation: OrganisationNumber, readBytes: number): void {
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

  #start(reader: BodyReader): void {
    const bytesBefore = reader.readBytes();
    const timer = setTimeout(() => {
      // Data that arrived while this thread was busy is handled first.
      setImmediate(() => {
        if (this.#reading.get(reader) !== timer) return;
        if (reader.readBytes() - bytesBefore >= LEAST_BYTES_PER_PERIOD) this.#start(reader);
        else this.end(reader, 0);
      });
    }, PERIOD_MS);
    this.#reading.set(reader, timer);
  }
}
