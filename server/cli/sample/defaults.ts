// The defaults of `headgate sample`, in a file of their own because the help shows them.

export const DEFAULT_CUSTOMERS = 1000;
export const DEFAULT_SEED = 1;
/** A fixed day, so that the same command always writes the same records. */
export const DEFAULT_UNTIL = '2026-09-30';
