// Limits how long a call waits for work that goes on.

/** Resolves to true when the work has settled, or to false after `timeMs`. Rejects if the work does. */
export async function settledWithin(work: Promise<unknown>, timeMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(resolve, timeMs, false);
  try {
    return await Promise.race([work.then(() => true), promise]);
  } finally {
    clearTimeout(timer);
  }
}
