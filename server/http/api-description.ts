// Provides the API description and the reference page. Clients seldom request them, so nothing is made when the server
// starts. The first request for either of them starts a thread that makes both.

import { createOnce } from '../create-once.ts';
import { startWorker } from '../workers/supervised-worker.ts';
import type { Description } from './api-description-thread.ts';
import type { ApiLimits } from './openapi/document.ts';

export type Describe = () => Promise<Description>;

export function describer({ maxRecords, batchSize, maxBodyBytes, rateLimitPerSecond }: ApiLimits): Describe {
  // The caller passes an object with all settings. Copying these four means that only they are sent to the thread.
  const limits: ApiLimits = { maxRecords, batchSize, maxBodyBytes, rateLimitPerSecond };
  return createOnce(() => make(limits));
}

function make(limits: ApiLimits): Promise<Description> {
  const script = new URL('./api-description-thread.ts', import.meta.url);
  const { worker, ended } = startWorker(script, { workerData: limits });
  // Without this, a server that stops would wait for the thread.
  worker.unref();
  const made = new Promise<Description>((resolve) => worker.once('message', resolve));
  return Promise.race([made, ended.then((reason) => Promise.reject(reason))]);
}
