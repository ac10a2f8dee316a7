// What is promised to an organisation, whatever another one does.

export const P99_LIMIT_MS = 250;
export const MEMORY_LIMIT_MB = 600;
/** An upload is one transaction: while one of 32 MiB is committed, a small write waits for it. */
export const LARGEST_UPLOADS_P99_LIMIT_MS = 1000;
export const LARGEST_UPLOADS_MEMORY_LIMIT_MB = 800;
