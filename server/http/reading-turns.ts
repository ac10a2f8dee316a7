// Lets large bodies be read a few at a time, those of one organisation in the order in which they came and the
// organisations in turn, and only until there is enough to keep the ingest thread busy. The rest stays with the clients.

import type { OrganisationNumber } from '../store/rows.ts';

/** Up to here a body is read at once: small requests never wait for large ones. */
export const READ_AT_ONCE_BYTES = 128 * 1024;
const MOST_READ_AT_A_TIME = 2;
/** Of one organisation's bodies that have been read and are not answered yet. */
const ENOUGH_READ_BYTES = 8 * 1024 * 1024;
/** Whoever sends less than this in a period is slow: it is read on, but nobody waits for it any longer. */
const PERIOD_MS = 20;
const LEAST_BYTES_PER_PERIOD = 64 * 1024;

export interface Reader {
  readonly organisation: OrganisationNumber;
  /** How much of the body has arrived. */
  readBytes(): number;
  /** Its turn has come: it may be read to its end. */
  readOn(): void;
}

export class ReadingTurns {
  /** The organisation whose turn is next comes first. */
  readonly #waiting = new Map<OrganisationNumber, Set<Reader>>();
  readonly #reading = new Map<Reader, NodeJS.Timeout>();
  readonly #readBytes = new Map<OrganisationNumber, number>();

  /** How many wait for their turn. */
  get waiting(): number {
    let waiting = 0;
    for (const ofOne of this.#waiting.values()) waiting += ofOne.size;
    return waiting;
  }

  /** True where it may be read on at once; otherwise it is told when. */
  begin(reader: Reader): boolean {
    const ofOne = this.#waiting.get(reader.organisation);
    if (ofOne === undefined && this.#hasRoom(reader.organisation)) {
      this.#start(reader);
      return true;
    }
    this.#waiting.set(reader.organisation, (ofOne ?? new Set()).add(reader));
    return false;
  }

  /** `reader`: null where it never needed a turn. `readBytes`: of the whole body, until it is answered; 0 where it will not come. */
  end(reader: Reader | null, readBytes: number): void {
    if (reader !== null) {
      clearTimeout(this.#reading.get(reader));
      this.#reading.delete(reader);
      this.#leave(reader);
      this.#count(reader.organisation, readBytes);
    }
    this.#startWaiting();
  }

  /** What needed no turn does not count, so that small bodies cannot keep large ones waiting. */
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
      // The organisation goes to the end of the line.
      const others = this.#waiting.get(organisation);
      this.#waiting.delete(organisation);
      if (others !== undefined) this.#waiting.set(organisation, others);
      this.#start(next);
      next.readOn();
    }
  }

  #next(): Reader | undefined {
    for (const [organisation, [first]] of this.#waiting) if (this.#hasRoom(organisation)) return first;
    return undefined;
  }

  #leave(reader: Reader): void {
    const ofOne = this.#waiting.get(reader.organisation);
    ofOne?.delete(reader);
    if (ofOne?.size === 0) this.#waiting.delete(reader.organisation);
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
