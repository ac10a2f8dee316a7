// Lets large bodies be read a few at a time, in the order in which they came, and only until there is enough to
// keep the ingest thread busy. The rest of the others stays with their clients.

/** Up to here a body is read at once: small requests never wait for large ones. */
export const READ_AT_ONCE_BYTES = 128 * 1024;
const MOST_READ_AT_A_TIME = 2;
/** Of bodies that have been read and are not answered yet. */
const ENOUGH_READ_BYTES = 12 * 1024 * 1024;
/** Whoever sends less than this in a period is slow: it is read on, but nobody waits for it any longer. */
const PERIOD_MS = 20;
const LEAST_BYTES_PER_PERIOD = 64 * 1024;

export interface Reader {
  /** How much of the body has arrived. */
  readBytes(): number;
  /** Its turn has come: it may be read to its end. */
  readOn(): void;
}

export class ReadingTurns {
  readonly #waiting = new Set<Reader>();
  readonly #reading = new Map<Reader, NodeJS.Timeout>();
  #readBytes = 0;

  /** True where it may be read on at once; otherwise it is told when. */
  begin(reader: Reader): boolean {
    if (this.#waiting.size === 0 && this.#hasRoom()) {
      this.#start(reader);
      return true;
    }
    this.#waiting.add(reader);
    return false;
  }

  /** `reader`: null where it never needed a turn. `readBytes`: of the whole body, until it is answered; 0 where it will not come. */
  end(reader: Reader | null, readBytes: number): void {
    if (reader !== null) {
      clearTimeout(this.#reading.get(reader));
      this.#reading.delete(reader);
      this.#waiting.delete(reader);
    }
    this.#readBytes += readBytes;
    this.#startWaiting();
  }

  answered(readBytes: number): void {
    this.#readBytes -= readBytes;
    this.#startWaiting();
  }

  #hasRoom(): boolean {
    return this.#reading.size < MOST_READ_AT_A_TIME && this.#readBytes < ENOUGH_READ_BYTES;
  }

  #startWaiting(): void {
    for (const reader of this.#waiting) {
      if (!this.#hasRoom()) return;
      this.#waiting.delete(reader);
      this.#start(reader);
      reader.readOn();
    }
  }

  #start(reader: Reader): void {
    const bytesBefore = reader.readBytes();
    const timer = setTimeout(() => {
      // What came while this thread was busy is heard of first.
      setImmediate(() => {
        if (this.#reading.get(reader) !== timer) return;
        if (reader.readBytes() - bytesBefore >= LEAST_BYTES_PER_PERIOD) this.#start(reader);
        else this.end(reader, 0);
      });
    }, PERIOD_MS);
    this.#reading.set(reader, timer);
  }
}
