// Memory of the threads through which uploads go. V8 lets the space for young objects grow with the memory of the
// machine: beyond these bounds that takes hundreds of megabytes and saves no work, because little of it is ever alive.

import { setFlagsFromString } from 'node:v8';
import type { ResourceLimits } from 'node:worker_threads';

/**
 * Holds an upload as it is parsed: objects, rows and their JSON. PostgreSQL's store works on the same thread, and holds
 * the rows of several uploads until they are written.
 */
export const ingestThreadLimits: Readonly<Record<'sqlite' | 'postgres', ResourceLimits>> = {
  sqlite: { maxYoungGenerationSizeMb: 48 },
  postgres: { maxYoungGenerationSizeMb: 96 },
};

/** Hold some of an upload's rows, or a page of them, at a time. */
export const storeThreadLimits: ResourceLimits = { maxYoungGenerationSizeMb: 4 };

/** For the whole process, before its threads are started. */
export function prepareThreadMemory(): void {
  // Of an upload under way nearly everything outlives a collection, and from that V8 may conclude that rows live long,
  // and put all of them where only a rare collection finds them: forty megabytes more, and a twentieth more work.
  setFlagsFromString('--no-allocation-site-pretenuring');
  // What bin/headgate.js gives to the serving thread would be given to each of the others.
  setFlagsFromString('--min-semi-space-size=0');
  setFlagsFromString('--max-semi-space-size=0');
}
