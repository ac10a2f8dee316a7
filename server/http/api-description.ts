// Provides the API description and the reference page. They are seldom requested, so they are made together, on their
// own thread, at the first request for one of them.

import { createOnce } from '../create-once.ts';
import { startWorker } from '../workers/supervised-worker.ts';
import type { Description } from './api-description-thread.ts';
import type { ApiLimits } from './openapi/limits.ts';

export type Describe = () => Promise<Description>;

export function describer({ maxRecords, batchSize, maxBodyBytes, rateLimitPerSecond }: ApiLimits): Describe {
  // The caller passes all settings. Only the named ones are sent to the other thread.
  const limits: ApiLimits = { maxRecords, batchSize, maxBodyBytes, rateLimitPerSecond };
  return createOnce(() => make(limits));
}

function make(limits: ApiLimits): Promise<Description> {
  const script = new URL('./api-description-thread.ts', import.meta.url);
  const { worker, ended } = startWorker(script, { workerData: limits });
  // A server that stops does not wait for this thread.
  worker.unref();
  const made = new Promise<Description>((resolve) => worker.once('message', resolve));
  return Promise.race([made, ended.then((reason) => Promise.reject(reason))]);
}
