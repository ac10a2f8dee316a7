// Passes requests with the header Expect to the handlers; Node would respond before their key is checked. `100
// Continue` is sent when a handler starts to read the body, so that clients do not send a body that is refused.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';

const waiting = new WeakMap<IncomingMessage, ServerResponse>();

export function handleExpectations(server: Server): void {
  server.on('checkContinue', (request, response) => {
    waiting.set(request, response);
    server.emit('request', request, response);
  });
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
}

/** Returns whether Expect is not `100-continue`. HTTP/1.0 does not have the header, so it is ignored there. */
export function expectsTheUnknown(request: IncomingMessage): boolean {
  return request.headers.expect !== undefined && request.httpVersion === '1.1' && !waiting.has(request);
}

/** Sends `100 Continue` if the client waits for it. */
export function askForBody(request: IncomingMessage): void {
  if (request.headers.expect === undefined) return;
  waiting.get(request)?.writeContinue();
  waiting.delete(request);
}
