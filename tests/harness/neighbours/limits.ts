// The limits that are guaranteed to an organisation, whatever another one does.

/** For the benchmark, on two quiet cores. */
export const P99_LIMIT_MS = 250;
/** A body of 32 MiB is stored in one transaction, for which the next write has to wait. */
export const LARGEST_UPLOADS_P99_LIMIT_MS = 500;
/** The limit for the test, which runs on machines of any kind, right after the start of a server. */
export const LONGEST_WAIT_P99_MS = 1000;
export const MEMORY_LIMIT_MB = 600;
/** A body of 32 MiB is in memory several times while it is checked and written. */
export const LARGEST_UPLOADS_MEMORY_LIMIT_MB = 800;
