// Leaves requests with the header Expect to the handlers: Node would answer them before their key is looked at.
// `100 Continue` is sent when a handler starts to read the body, so that clients do not send a body that is refused.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';

const waiting = new WeakMap<IncomingMessage, ServerResponse>();

export function handleExpectations(server: Server): void {
  server.on('checkContinue', (request, response) => {
    waiting.set(request, response);
    server.emit('request', request, response);
  });
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
}

/** HTTP/1.0 does not have the header, and must ignore it. */
export function expectsTheUnknown(request: IncomingMessage): boolean {
  return request.headers.expect !== undefined && request.httpVersion === '1.1' && !waiting.has(request);
}

/** Has no effect if the client does not wait to be asked. */
export function askForBody(request: IncomingMessage): void {
  if (request.headers.expect === undefined) return;
  waiting.get(request)?.writeContinue();
  waiting.delete(request);
}
