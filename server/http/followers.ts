// Lets requests for changes wait until their organisation's ledger has a further entry. Entries that this process writes
// wake them at once. For entries of other processes, the store is polled once a second, once for all that wait in
// an organisation. If nobody waits, nothing is done.

import type { OrganisationNumber } from '../store/rows.ts';
import type { Store } from '../store/store.ts';

export interface FollowerLimits {
  /** The most requests of one organisation that wait at once. */
  readonly mostWaiting: number;
  readonly pollEveryMs: number;
}

const followerLimits: FollowerLimits = { mostWaiting: 50, pollEveryMs: 1000 };

interface Line {
  /** For each waiting request, what to call when the ledger has an entry after a number. */
  readonly waiting: Map<() => void, number>;
  readonly timer: NodeJS.Timeout;
  isPolling: boolean;
  isDue: boolean;
}

export class Followers {
  readonly #store: Pick<Store, 'latestEntry'>;
  readonly #limits: FollowerLimits;
  readonly #lines = new Map<OrganisationNumber, Line>();
  #isClosed = false;

  constructor(store: Pick<Store, 'latestEntry'>, limits: FollowerLimits = followerLimits) {
    this.#store = store;
    this.#limits = limits;
  }

  /** The number of requests that wait. */
  get waiting(): number {
    return [...this.#lines.values()].reduce((sum, { waiting }) => sum + waiting.size, 0);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  isFull(organisation: OrganisationNumber): boolean {
    return (this.#lines.get(organisation)?.waiting.size ?? 0) >= this.#limits.mostWaiting;
  }

  /**
   * Resolves when the ledger has an entry after `seq`, after `waitMs`, or when this is closed. Calls `onWait` with a
   * function that ends the wait.
   */
  async nextEntry(
    organisation: OrganisationNumber,
    seq: number,
    waitMs: number,
    onWait: (endWait: () => void) => void,
  ): Promise<void> {
    if (this.#isClosed) return;
    const line = this.#lineOf(organisation);
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, waitMs);
    line.waiting.set(resolve, seq);
    onWait(resolve);
    // An entry may have been added since the ledger was read.
    this.wake(organisation);
    await promise;
    clearTimeout(timer);
    line.waiting.delete(resolve);
    if (line.waiting.size > 0) return;
    clearInterval(line.timer);
    this.#lines.delete(organisation);
  }

  /** Polls the store at once, because an upload of the organisation has just been stored. */
  wake(organisation: OrganisationNumber): void {
    const line = this.#lines.get(organisation);
    if (line !== undefined) void this.#poll(organisation, line);
  }

  /** Ends all waits, now and from now on. */
  close(): void {
    this.#isClosed = true;
    for (const { waiting } of this.#lines.values()) for (const resolve of waiting.keys()) resolve();
  }

  #lineOf(organisation: OrganisationNumber): Line {
    const known = this.#lines.get(organisation);
    if (known !== undefined) return known;
    const poll = (): void => this.wake(organisation);
    const timer = setInterval(poll, this.#limits.pollEveryMs);
    const line = { waiting: new Map(), timer, isPolling: false, isDue: false };
    this.#lines.set(organisation, line);
    return line;
  }

  async #poll(organisation: OrganisationNumber, line: Line): Promise<void> {
    line.isDue = true;
    if (line.isPolling) return;
    line.isPolling = true;
    try {
      while (line.isDue && line.waiting.size > 0) {
        line.isDue = false;
        const latest = await this.#store.latestEntry(organisation);
        for (const [resolve, seq] of line.waiting) if (seq < latest) resolve();
      }
    } catch {
      // The requests read the store again, and report why it cannot be read.
      for (const resolve of line.waiting.keys()) resolve();
    } finally {
      line.isPolling = false;
    }
  }
}
