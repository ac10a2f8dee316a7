// The defaults of `headgate sample`. They have their own file, because the help shows them without loading the command.

export const DEFAULT_CUSTOMERS = 1000;
export const DEFAULT_SEED = 1;
/** A fixed day, so that the same command always writes the same records. */
export const DEFAULT_UNTIL = '2026-09-30';
