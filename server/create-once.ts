// Makes a value on its first use and caches it.

/** Returns a function that calls `make` at most once at a time and caches the result. A failure is not cached. */
export function createOnce<Made>(make: () => Promise<Made>): () => Promise<Made> {
  let making: Promise<Made> | null = null;
  return () => {
    making ??= make().catch((error: unknown) => {
      making = null;
      throw error;
    });
    return making;
  };
}
