// The API's description and the reference page: seldom asked for, and made together, on a thread of their own, when
// one of them first is.

import { startWorker } from '../workers/supervised-worker.ts';
import { createOnce } from './create-once.ts';
import type { Description } from './description-thread.ts';
import type { ApiLimits } from './openapi/limits.ts';

export type Describe = () => Promise<Description>;

export function describer({ maxRecords, batchSize, maxBodyBytes, rateLimitPerSecond }: ApiLimits): Describe {
  // Only what is named: settings hold more, and nothing of that has to go to another thread.
  const limits: ApiLimits = { maxRecords, batchSize, maxBodyBytes, rateLimitPerSecond };
  return createOnce(() => make(limits));
}

function make(limits: ApiLimits): Promise<Description> {
  const script = new URL('./description-thread.ts', import.meta.url);
  const { worker, ended } = startWorker(script, { workerData: limits });
  // A server that stops does not wait for it.
  worker.unref();
  const made = new Promise<Description>((resolve) => worker.once('message', resolve));
  return Promise.race([made, ended.then((reason) => Promise.reject(reason))]);
}
