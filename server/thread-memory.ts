// Limits the memory of the threads that handle uploads. V8 lets the young generation grow with the machine's memory.
// Beyond these limits that takes hundreds of megabytes and saves no work, because few of the objects are alive.

import { setFlagsFromString } from 'node:v8';
import type { ResourceLimits } from 'node:worker_threads';

/**
 * Enough for an upload while it is parsed: objects, rows and their JSON. PostgreSQL's store runs on the same thread,
 * and keeps the rows of several uploads until they are written.
 */
export const ingestThreadLimits: Readonly<Record<'sqlite' | 'postgres', ResourceLimits>> = {
  sqlite: { maxYoungGenerationSizeMb: 48 },
  postgres: { maxYoungGenerationSizeMb: 96 },
};

/** Enough for a part of an upload's rows, or for a page of a list. */
export const storeThreadLimits: ResourceLimits = { maxYoungGenerationSizeMb: 4 };

/** Sets V8's flags for the whole process. Call it before the threads are started. */
export function prepareThreadMemory(): void {
  // Nearly all objects of a running upload survive a collection, so V8 may start to allocate rows in the old
  // generation. That would cost 40 MB and 5 % more work.
  setFlagsFromString('--no-allocation-site-pretenuring');
  // Otherwise the sizes that bin/headgate.js sets for the serving thread would apply to every thread.
  setFlagsFromString('--min-semi-space-size=0');
  setFlagsFromString('--max-semi-space-size=0');
}
