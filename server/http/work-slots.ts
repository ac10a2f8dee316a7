// Limits how many requests of one organisation are worked on at once, from the moment that their bodies are complete
// until their answers are sent. The others wait here, where they cost their bodies and nothing else. A client that does
// not read its answers thus keeps only its own organisation waiting.

import type { OrganisationNumber } from '../store/rows.ts';

interface Line {
  working: number;
  /** Each is called with whether it may be worked on. */
  readonly waiting: Set<(mayWork: boolean) => void>;
}

export interface WorkSlotsOptions {
  /** For one organisation. */
  readonly slots: number;
  readonly mostWaiting: number;
  readonly longestWaitMs: number;
}

/**
 * For uploads, and interactions that are not small. Enough requests at once for the store to commit several together; few
 * enough that their answers, of some megabytes each if thousands of records are wrong, fit into memory while nobody reads
 * them.
 */
export const uploadSlots: WorkSlotsOptions = { slots: 16, mostWaiting: 1000, longestWaitMs: 30_000 };
/** For pages of lists, which the serving thread writes one after the other. */
export const listSlots: WorkSlotsOptions = { slots: 1, mostWaiting: 100, longestWaitMs: 30_000 };
/**
 * For single records and interactions. One with the longest texts is a quarter of a MiB of JSON, which the serving thread
 * reads and writes in four milliseconds.
 */
export const lookUpSlots: WorkSlotsOptions = { slots: 8, mostWaiting: 1000, longestWaitMs: 30_000 };

export class WorkSlots {
  readonly #options: WorkSlotsOptions;
  readonly #lines = new Map<OrganisationNumber, Line>();

  constructor(options: WorkSlotsOptions) {
    this.#options = options;
  }

  /**
   * Resolves to whether the request has a slot, which is then given back with `leave`. A request that has to wait hands
   * `onWait` the function that ends its waiting.
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
