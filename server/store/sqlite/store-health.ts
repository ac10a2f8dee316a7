// Whether the store can serve, as any holder of it can say without waiting behind what its threads have to do.

import { StoreUnavailable } from '../store.ts';
import { FileWatch, type OpenedFiles } from './file-identity.ts';
import { hasFailed, stalledForS, type ThreadHealth } from './thread-health.ts';

/** What a thread shows of itself and of the files that it works on. */
export interface ShownHealth {
  readonly health: ThreadHealth;
  readonly files: OpenedFiles;
}

interface Reached {
  /** Returns why the thread cannot be reached, or null. */
  absence(): string | null;
}

export class StoreHealth<ThreadName extends string> {
  readonly #links: Readonly<Record<ThreadName, Reached>>;
  readonly #shown = new Map<ThreadName, ThreadHealth>();
  #watch: FileWatch | null = null;

  constructor(links: Readonly<Record<ThreadName, Reached>>) {
    this.#links = links;
  }

  watch(thread: ThreadName, { health, files }: ShownHealth): void {
    this.#shown.set(thread, health);
    this.#watch ??= new FileWatch(files);
  }

  /**
   * Rejects with the reason if the store is broken; a store that is only busy is not. `proveByWriting` is asked if a call
   * has failed: it resolves if the writer can write again.
   */
  async assertServing(proveByWriting: () => Promise<unknown>): Promise<void> {
    const reason = this.#absence() ?? this.#stall();
    if (reason !== null) throw new StoreUnavailable(reason);
    const loss = await this.#watch?.lossSoon();
    if (loss) {
      // So an idle writer hears of it, and does what can be done for the log.
      proveByWriting().catch(() => {});
      throw new StoreUnavailable(loss.message);
    }
    if ([...this.#shown.values()].some(hasFailed)) await proveByWriting();
  }

  #absence(): string | null {
    for (const link of Object.values<Reached>(this.#links)) {
      const absence = link.absence();
      if (absence !== null) return absence;
    }
    return null;
  }

  #stall(): string | null {
    for (const [thread, health] of this.#shown) {
      const stalledS = stalledForS(health);
      if (stalledS !== null) return `the store's ${thread} thread has made no progress for ${stalledS} s`;
    }
    return null;
  }
}
