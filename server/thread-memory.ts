// Memory of the threads that parse whole uploads.

import type { ResourceLimits } from 'node:worker_threads';

/**
 * V8 lets the space for young objects grow with the memory of the machine. Beyond this it gains an upload one part in
 * a hundred and takes hundreds of megabytes.
 */
export const parsingThreadLimits: ResourceLimits = { maxYoungGenerationSizeMb: 96 };
