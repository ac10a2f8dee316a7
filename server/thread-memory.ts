// Memory of the threads through which uploads go: the one that parses them, and those of the SQLite store.

import type { ResourceLimits } from 'node:worker_threads';

/**
 * V8 lets the space for young objects grow with the memory of the machine. Beyond this it gains an upload one part in
 * a hundred and takes hundreds of megabytes.
 */
export const uploadThreadLimits: ResourceLimits = { maxYoungGenerationSizeMb: 96 };
