// What is made when it is first asked for, and then kept.

/** What failed once may succeed the next time: only what was made is kept. */
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
