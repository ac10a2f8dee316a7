// Checks the shape of the response to a request that is refused as a whole.

import assert from 'node:assert/strict';
import { STATUS_CODES } from 'node:http';
import type { RefusalBody, Reply } from './api.ts';

const requestIdForm = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
/** The current names of statuses for which Node still uses an older name. */
const renamed: Readonly<Record<number, string>> = { 413: 'Content Too Large', 422: 'Unprocessable Content' };

/** Fails unless the body is `{error, message, request_id}`, with the name of the status as the error. */
export function assertRefusal(
  { status, headers, body }: Reply<RefusalBody>,
  expected: number,
  says: RegExp,
): void {
  assert.equal(status, expected, JSON.stringify(body));
  assert.deepEqual(body, {
    error: renamed[expected] ?? STATUS_CODES[expected],
    message: body.message,
    request_id: body.request_id,
  });
  assert.match(body.message, says);
  assert.match(body.request_id, requestIdForm);
  assert.equal(headers.get('x-request-id'), body.request_id);
  assert.match(headers.get('content-type')!, /^application\/json\b/);
}
