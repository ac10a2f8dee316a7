// Limits how much a store reads for one page of a list. Lists are read in steps of bounded cost, so that other calls
// get their turn in between, and a page ends when it reaches a limit.

const MIB = 1024 * 1024;

/**
 * The approximate limit for the JSON of a page's rows, in bytes. A single row that is longer still forms a page. The
 * serving thread takes about 15 ms to write a response of this size, and serves no other request in that time.
 */
export const PAGE_BYTES = MIB;
/**
 * How many index entries one step reads if each row has to be checked. Otherwise a single step reads the whole page.
 */
export const STEP_ENTRIES = 2000;
/** How many index entries one step counts. PostgreSQL may have to read the row of each. */
export const COUNT_STEP_ENTRIES = 5000;
/** After this many index entries, a page ends even if it is not full. */
const PAGE_ENTRIES = 40_000;
/** After this much time in its steps, a page ends with the current step even if it is not full. */
const PAGE_WORK_MS = 200;

/** Counts the rows, bytes, index entries and time that a page has used so far. */
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

  /** How many more rows the page may have. If rows are long, fewer may fit. */
  get roomRows(): number {
    return this.#limit - this.#rows;
  }

  /**
   * Returns how many rows, from the first one on, still fit into the page, given the size of each row in bytes. In an
   * empty page, the first row always fits.
   */
  fitting(rowsBytes: readonly number[]): number {
    let bytes = this.#bytes;
    const firstTooMuch = rowsBytes.findIndex((rowBytes, position) => {
      bytes += rowBytes;
      return bytes > PAGE_BYTES && this.#rows + position > 0;
    });
    return Math.min(this.roomRows, firstTooMuch === -1 ? rowsBytes.length : firstTooMuch);
  }

  /** Counts a row as part of the page. Returns false, without counting the row, if its JSON does not fit. */
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

  /**
   * Ends the step that `beginStep` began. Returns false if the page is full or has reached the limit of entries or
   * time.
   */
  endStep(): boolean {
    this.#workMs += performance.now() - this.#stepBeganAtMs;
    this.#entries += STEP_ENTRIES;
    return this.roomRows > 0 && this.#entries < PAGE_ENTRIES && this.#workMs < PAGE_WORK_MS;
  }
}
