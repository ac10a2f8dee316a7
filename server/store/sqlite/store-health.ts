// Checks whether the store can serve, without waiting behind the work of its threads.

import { StoreUnavailable } from '../store.ts';
import { FileWatch, type OpenedFiles } from './file-identity.ts';
import type { Link } from './thread-calls.ts';
import { hasFailed, stalledForS, type ThreadHealth } from './thread-health.ts';

/** The health of a thread, and the files that it uses. */
export interface ShownHealth {
  readonly health: ThreadHealth;
  readonly files: OpenedFiles;
}

export class StoreHealth<ThreadName extends string> {
  readonly #links: readonly Pick<Link<never>, 'absence'>[];
  readonly #shown = new Map<ThreadName, ThreadHealth>();
  #watch: FileWatch | null = null;

  constructor(links: Readonly<Record<ThreadName, Pick<Link<never>, 'absence'>>>) {
    this.#links = Object.values(links);
  }

  watch(thread: ThreadName, { health, files }: ShownHealth): void {
    this.#shown.set(thread, health);
    this.#watch ??= new FileWatch(files);
  }

  /**
   * Rejects with the reason if the store is broken. Resolves if the store is only busy. If a call has failed before,
   * also waits for `proveByWriting`, which has to resolve if the writer can write again and reject if not.
   */
  async assertServing(proveByWriting: () => Promise<unknown>): Promise<void> {
    for (const link of this.#links) {
      const absence = link.absence();
      if (absence !== null) throw new StoreUnavailable(absence);
    }
    for (const [thread, health] of this.#shown) {
      const stalledS = stalledForS(health);
      if (stalledS === null) continue;
      throw new StoreUnavailable(`the store's ${thread} thread has made no progress for ${stalledS} s`);
    }
    const loss = await this.#watch?.lossSoon();
    if (loss) {
      // Sends the writer a call, so that an idle writer notices the loss and saves the log if it can.
      proveByWriting().catch(() => {});
      throw new StoreUnavailable(loss.message);
    }
    if ([...this.#shown.values()].some(hasFailed)) await proveByWriting();
  }
}
