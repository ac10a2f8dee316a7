// The defaults of `headgate sample`, which its help names.

export const DEFAULT_CUSTOMERS = 1000;
export const DEFAULT_SEED = 1;
/** A fixed day, so that the same command writes the same records next year, too. */
export const DEFAULT_UNTIL = '2026-09-30';
