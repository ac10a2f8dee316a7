// Makes the API description and the reference page on a thread of its own, which then ends. Making them takes a few
// hundred milliseconds, for which the serving thread would otherwise be blocked.

import { parentPort, workerData } from 'node:worker_threads';
import { type ApiLimits, openApiDocument } from './openapi/document.ts';
import { referencePage } from './reference/page.ts';

export interface Description {
  /** The OpenAPI document, as JSON. */
  readonly openApi: string;
  /** The reference page, as HTML. */
  readonly page: string;
}

const document = openApiDocument(workerData as ApiLimits);
const description: Description = { openApi: JSON.stringify(document), page: referencePage(document) };
parentPort!.postMessage(description);
