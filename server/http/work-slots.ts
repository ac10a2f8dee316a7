// Limits how many requests of one organisation are processed at once. A request counts from the end of its body until
// its response is sent, so a client that does not read its responses delays only its own organisation. Further requests
// wait here, and take no memory except for their bodies.

import type { OrganisationNumber } from '../store/rows.ts';

interface Line {
  working: number;
  /** Each function is called with true when its request gets a slot, or with false when it has to give up. */
  readonly waiting: Set<(mayWork: boolean) => void>;
}

export interface WorkSlotsOptions {
  /** The number of requests of one organisation that are worked on at once. */
  readonly slots: number;
  readonly mostWaiting: number;
  readonly longestWaitMs: number;
}

/**
 * For uploads, and for interactions that are not small. The slots are enough for the store to commit several requests
 * together, and few enough that unread responses fit into memory: one takes some megabytes if thousands of records are
 * wrong.
 */
export const uploadSlots: WorkSlotsOptions = { slots: 16, mostWaiting: 1000, longestWaitMs: 30_000 };
/** For pages of lists, which the serving thread serialises one after the other. */
export const listSlots: WorkSlotsOptions = { slots: 1, mostWaiting: 100, longestWaitMs: 30_000 };
/**
 * For single records and interactions. One with the longest texts is 256 KiB of JSON, which takes the serving thread
 * four milliseconds to read and serialise.
 */
export const lookUpSlots: WorkSlotsOptions = { slots: 8, mostWaiting: 1000, longestWaitMs: 30_000 };

export class WorkSlots {
  readonly #options: WorkSlotsOptions;
  readonly #lines = new Map<OrganisationNumber, Line>();

  constructor(options: WorkSlotsOptions) {
    this.#options = options;
  }

  /**
   * Resolves to true if the request has a slot; the caller then gives it back with `leave`. If the request has to wait,
   * `onWait` is called with a function that ends the wait.
   */
  async enter(
    organisation: OrganisationNumber,
    onWait: (giveUp: () => void) => void = () => {},
  ): Promise<boolean> {
    const { slots, mostWaiting, longestWaitMs } = this.#options;
    const line = this.#lines.get(organisation) ?? { working: 0, waiting: new Set() };
    this.#lines.set(organisation, line);
    if (line.working < slots) {
      line.working++;
      return true;
    }
    if (line.waiting.size >= mostWaiting) return false;
    return new Promise((resolve) => {
      const settle = (mayWork: boolean): void => {
        clearTimeout(timer);
        line.waiting.delete(settle);
        resolve(mayWork);
      };
      const timer = setTimeout(settle, longestWaitMs, false);
      line.waiting.add(settle);
      onWait(() => settle(false));
    });
  }

  leave(organisation: OrganisationNumber): void {
    const line = this.#lines.get(organisation)!;
    const [next] = line.waiting;
    if (next !== undefined) {
      next(true);
      return;
    }
    line.working--;
    if (line.working === 0) this.#lines.delete(organisation);
  }
}
