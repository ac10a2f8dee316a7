// Lets large bodies be read a few at a time, those of one key in the order in which they came and the keys in turn,
// and only until there is enough to keep the ingest thread busy. The rest of the others stays with their clients.

/** Up to here a body is read at once: small requests never wait for large ones. */
export const READ_AT_ONCE_BYTES = 128 * 1024;
const MOST_READ_AT_A_TIME = 2;
/** Of bodies that have been read and are not answered yet. */
const ENOUGH_READ_BYTES = 8 * 1024 * 1024;
/** Whoever sends less than this in a period is slow: it is read on, but nobody waits for it any longer. */
const PERIOD_MS = 20;
const LEAST_BYTES_PER_PERIOD = 64 * 1024;

export interface Reader {
  readonly keyId: string;
  /** How much of the body has arrived. */
  readBytes(): number;
  /** Its turn has come: it may be read to its end. */
  readOn(): void;
}

export class ReadingTurns {
  /** By key; the key whose turn it is next comes first. */
  readonly #waiting = new Map<string, Set<Reader>>();
  readonly #reading = new Map<Reader, NodeJS.Timeout>();
  #readBytes = 0;

  /** How many wait for their turn. */
  get waiting(): number {
    let waiting = 0;
    for (const ofKey of this.#waiting.values()) waiting += ofKey.size;
    return waiting;
  }

  /** True where it may be read on at once; otherwise it is told when. */
  begin(reader: Reader): boolean {
    if (this.#waiting.size === 0 && this.#hasRoom()) {
      this.#start(reader);
      return true;
    }
    const ofKey = this.#waiting.get(reader.keyId) ?? new Set();
    this.#waiting.set(reader.keyId, ofKey.add(reader));
    return false;
  }

  /** `reader`: null where it never needed a turn. `readBytes`: of the whole body, until it is answered; 0 where it will not come. */
  end(reader: Reader | null, readBytes: number): void {
    if (reader !== null) {
      clearTimeout(this.#reading.get(reader));
      this.#reading.delete(reader);
      this.#leave(reader);
      this.#readBytes += readBytes;
    }
    this.#startWaiting();
  }

  /** What needed no turn does not count, so that small bodies cannot keep large ones waiting. */
  answered(readBytes: number): void {
    if (readBytes <= READ_AT_ONCE_BYTES) return;
    this.#readBytes -= readBytes;
    this.#startWaiting();
  }

  #hasRoom(): boolean {
    return this.#reading.size < MOST_READ_AT_A_TIME && this.#readBytes < ENOUGH_READ_BYTES;
  }

  #startWaiting(): void {
    while (this.#hasRoom()) {
      const [ofNextKey] = this.#waiting.values();
      if (ofNextKey === undefined) return;
      const [reader] = ofNextKey;
      this.#leave(reader!);
      // The key goes to the end of the line.
      this.#waiting.delete(reader!.keyId);
      if (ofNextKey.size > 0) this.#waiting.set(reader!.keyId, ofNextKey);
      this.#start(reader!);
      reader!.readOn();
    }
  }

  #leave(reader: Reader): void {
    const ofKey = this.#waiting.get(reader.keyId);
    ofKey?.delete(reader);
    if (ofKey?.size === 0) this.#waiting.delete(reader.keyId);
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
