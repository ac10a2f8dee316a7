// Limits the memory of the threads that handle uploads. Without limits, V8's young generation grows with the memory of
// the machine. Beyond these limits it would take hundreds of megabytes more and save no work.

import { setFlagsFromString } from 'node:v8';
import type { ResourceLimits } from 'node:worker_threads';

/**
 * The limits of the ingest thread for large requests, by the kind of store. They are enough for the objects, rows and
 * JSON of an upload while it is parsed. The store for PostgreSQL runs on the same thread and keeps the rows of several
 * uploads until they are written, so it needs more.
 */
export const ingestThreadLimits: Readonly<Record<'sqlite' | 'postgres', ResourceLimits>> = {
  sqlite: { maxYoungGenerationSizeMb: 48 },
  postgres: { maxYoungGenerationSizeMb: 96 },
};

/** The limits of the store's threads. They are enough for a part of an upload's rows, or for a page of a list. */
export const storeThreadLimits: ResourceLimits = { maxYoungGenerationSizeMb: 4 };

/** Sets V8's flags for the whole process. Call it before the threads are started. */
export function prepareThreadMemory(): void {
  // Nearly all objects of a running upload survive a garbage collection. Without this flag, V8 may therefore start to
  // allocate rows in the old generation, which would cost 40 MB of memory and 5 % more work.
  setFlagsFromString('--no-allocation-site-pretenuring');
  // Resets the sizes that bin/headgate.js sets for the serving thread. Otherwise they would apply to every thread.
  for (const size of ['min-semi-space-size', 'max-semi-space-size', 'max-old-space-size']) {
    setFlagsFromString(`--${size}=0`);
  }
}
