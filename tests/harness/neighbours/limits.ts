// What is promised to an organisation, whatever another one does.

/** For the benchmark, on two quiet cores. */
export const P99_LIMIT_MS = 250;
/** A body of 32 MiB is stored in one transaction, which whoever writes next has to wait for. */
export const LARGEST_UPLOADS_P99_LIMIT_MS = 500;
/** Nobody waits longer for others. For the test, which runs on machines of any kind, right after a server's start. */
export const LONGEST_WAIT_P99_MS = 1000;
export const MEMORY_LIMIT_MB = 600;
/** A body of 32 MiB is held several times over while it is checked and written. */
export const LARGEST_UPLOADS_MEMORY_LIMIT_MB = 800;
