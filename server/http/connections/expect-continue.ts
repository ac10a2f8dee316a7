// Handles the request header Expect. Node would respond to it before the API key is checked, so these requests are
// passed to the handlers instead. `100 Continue` is sent when a handler starts to read the body, so that a client does
// not send a body if its request is refused.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';

const waiting = new WeakMap<IncomingMessage, ServerResponse>();

export function handleExpectations(server: Server): void {
  server.on('checkContinue', (request, response) => {
    waiting.set(request, response);
    server.emit('request', request, response);
  });
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
}

/**
 * Returns whether the request has an Expect header other than `100-continue`. The header does not exist in HTTP/1.0, so
 * it is ignored there.
 */
export function expectsTheUnknown(request: IncomingMessage): boolean {
  return request.headers.expect !== undefined && request.httpVersion === '1.1' && !waiting.has(request);
}

/** Sends `100 Continue` if the client waits for it. */
export function askForBody(request: IncomingMessage): void {
  if (request.headers.expect === undefined) return;
  waiting.get(request)?.writeContinue();
  waiting.delete(request);
}
