// Sends `100 Continue` when a handler starts to read the body. Node would send it before the request is looked at, and
// a client would then send a body that is refused.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';

const waiting = new WeakMap<IncomingMessage, ServerResponse>();

export function postponeContinue(server: Server): void {
  server.on('checkContinue', (request, response) => {
    waiting.set(request, response);
    server.emit('request', request, response);
  });
}

/** Has no effect if the client does not wait to be asked. */
export function askForBody(request: IncomingMessage): void {
  if (request.headers.expect === undefined) return;
  waiting.get(request)?.writeContinue();
  waiting.delete(request);
}
