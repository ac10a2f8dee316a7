// How much a store reads for one page of a list. Every list is read in steps of bounded cost, after each of which
// others have their turn, and a page ends when it has used up what it may.

const MIB = 1024 * 1024;

/**
 * About the JSON of a page's rows; a page with a single longer row is longer. The serving thread takes some 15 ms to write
 * a page of this size as the response, in which it serves nobody else.
 */
export const PAGE_BYTES = MIB;
/** Index entries that are looked at in one step, if some of them may not belong to the list. */
export const STEP_ENTRIES = 2000;
/** Index entries that are looked at for one page. */
const PAGE_ENTRIES = 40_000;
/** How long the steps of one page may take together; the last one is finished. */
const PAGE_WORK_MS = 200;

/** The account of a page while its rows are collected. */
export class PageAccount {
  readonly #limit: number;
  #rows = 0;
  #bytes = 0;
  #entries = 0;
  #workMs = 0;
  #stepBeganAtMs = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** How many more rows may come; if they are long, fewer will fit. */
  get roomRows(): number {
    return this.#limit - this.#rows;
  }

  /** Returns how many of the rows with these sizes fit, from the first on. Of an empty page the first row always fits. */
  fitting(rowsBytes: readonly number[]): number {
    let bytes = this.#bytes;
    const firstTooMuch = rowsBytes.findIndex((rowBytes, position) => {
      bytes += rowBytes;
      return bytes > PAGE_BYTES && this.#rows + position > 0;
    });
    return Math.min(this.roomRows, firstTooMuch === -1 ? rowsBytes.length : firstTooMuch);
  }

  /** Counts a row as JSON. Returns false, and counts nothing, if it does not fit. */
  take(rowJson: string): boolean {
    const bytes = Buffer.byteLength(rowJson);
    if (this.fitting([bytes]) === 0) return false;
    this.#rows++;
    this.#bytes += bytes;
    return true;
  }

  beginStep(): void {
    this.#stepBeganAtMs = performance.now();
  }

  /** Returns false if the page is full or has used up what it may look at. */
  endStep(): boolean {
    this.#workMs += performance.now() - this.#stepBeganAtMs;
    this.#entries += STEP_ENTRIES;
    return this.roomRows > 0 && this.#entries < PAGE_ENTRIES && this.#workMs < PAGE_WORK_MS;
  }
}
