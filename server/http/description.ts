// The API's description and the reference page: seldom asked for, and made together, on a thread of their own, when
// one of them first is.

import { Worker } from 'node:worker_threads';
import type { Description } from './description-thread.ts';
import { madeOnce } from './made-once.ts';
import type { ApiLimits } from './openapi/limits.ts';

export type Describe = () => Promise<Description>;

export function describer({ maxRecords, batchSize, maxBodyBytes, rateLimitPerSecond }: ApiLimits): Describe {
  // Only what is named: settings hold more, and nothing of that has to go to another thread.
  const limits: ApiLimits = { maxRecords, batchSize, maxBodyBytes, rateLimitPerSecond };
  return madeOnce(() => make(limits));
}

function make(limits: ApiLimits): Promise<Description> {
  const { promise, resolve, reject } = Promise.withResolvers<Description>();
  const thread = new Worker(new URL('./description-thread.ts', import.meta.url), { workerData: limits });
  thread
    .once('message', resolve)
    .once('error', reject)
    .once('exit', () => reject(new Error('the thread that describes the API ended without a word')))
    // A server that stops does not wait for it.
    .unref();
  return promise;
}
