// What is promised to an organisation, whatever another one does.

export const P99_LIMIT_MS = 250;
export const MEMORY_LIMIT_MB = 600;
