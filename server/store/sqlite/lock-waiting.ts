// Waits for the locks that other processes hold on a SQLite file.

import { isBusy } from './errors.ts';

const LOCK_PATIENCE_MS = 30_000;
const LOCK_RETRY_MS = 1;

const neverWoken = new Int32Array(new SharedArrayBuffer(4));

/** Blocks the thread. Use it only in threads that have nothing else to do. */
export function sleep(ms: number): void {
  Atomics.wait(neverWoken, 0, 0, ms);
}

/**
 * Retries every millisecond while another process holds the lock, until the timeout. SQLite's own busy handler is not
 * used, because its pauses grow to 100 ms: it rarely finds the short gaps between the commits of a busy server.
 */
export function retryWhileLocked<T>(attempt: () => T): T {
  const deadlineMs = performance.now() + LOCK_PATIENCE_MS;
  for (;;) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadlineMs) throw error;
      sleep(LOCK_RETRY_MS);
    }
  }
}
