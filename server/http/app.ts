// The HTTP floor put together: routes, the gate before them, and one answer for everything that goes wrong.

import { METHODS } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { StoreUnavailable } from '../store/store.ts';
import { uuidV7 } from '../uuid-v7.ts';
import { idleConnectionSweeper } from './connections.ts';
import { addGate, isGuarded, passGate } from './gate.ts';
import { notJson } from './read-body.ts';
import { getInteraction, getInteractions, getRecord, getRecords } from './reading.ts';
import {
  JSON_TYPE,
  type Refusal,
  type RefusalName,
  rawRefusal,
  refusalBody,
  refusals,
  refuse,
} from './refusals.ts';
import type { Service } from './service.ts';
import { postInteraction, postRecords } from './uploads.ts';

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> | FastifyReply;

interface Route {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly isPublic?: boolean;
  readonly handler: Handler;
}

const HEADERS_TIMEOUT_MS = 20_000;
/** A whole request must have arrived by then: 32 MiB at less than 1 Mbit/s. */
const REQUEST_TIMEOUT_MS = 300_000;
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
const PING_TIMEOUT_MS = 2000;
/** More than the HTTP parser lets through, so that a handler answers for every path. */
const LONGEST_PATH_PART_CHARACTERS = 64 * 1024;

/** A missing host is refused here instead of by Node, which would say nothing. */
const parsing = { headersTimeout: HEADERS_TIMEOUT_MS, requireHostHeader: false };

const hostMissing: Refusal = {
  refusal: 'bad_request',
  message: 'The header Host is missing; HTTP/1.1 requires it.',
};

const storeSilent: Refusal = {
  refusal: 'service_unavailable',
  message: 'The store does not answer at this moment; try again shortly.',
  headers: { 'Retry-After': '1' },
};

export function buildApp(service: Service): FastifyInstance {
  const { tls } = service;
  const securityHeaders = securityHeadersFor(service);
  const app = fastify({
    ...(tls === null ? { http: parsing } : { https: { ...parsing, cert: tls.cert, key: tls.key } }),
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    genReqId: () => uuidV7(),
    requestIdHeader: false,
    logger: false,
    routerOptions: { maxParamLength: LONGEST_PATH_PART_CHARACTERS },
    // Refused below instead, in the shape and with the headers of every other refusal.
    return503OnClosing: false,
    clientErrorHandler(error, socket) {
      answerUnparsed(error, socket, { ...securityHeaders });
    },
    frameworkErrors(_, request, reply) {
      addHeaders(request, reply, securityHeaders);
      passGate(service, request, reply, isGuarded(request.url), (failure) => {
        void (failure ? answerError(service, failure, request, reply) : refuse(reply, unreadablePath));
      });
    },
  }) as unknown as FastifyInstance;

  app.server.on('checkExpectation', (request, response) => {
    const requestId = uuidV7();
    const body = JSON.stringify(refusalBody(unmetExpectation, requestId));
    response.writeHead(refusals.expectation_failed.status, {
      ...securityHeaders,
      'X-Request-Id': requestId,
      'Content-Type': JSON_TYPE,
      'Content-Length': Buffer.byteLength(body),
    });
    response.end(body);
    request.resume();
  });
  const sweepIdleConnections = idleConnectionSweeper(app.server);
  let closing = false;
  app.addHook('onRequest', (request, reply, done) => {
    addHeaders(request, reply, securityHeaders);
    const lacksHost = request.headers.host === undefined && request.raw.httpVersion === '1.1';
    if (lacksHost) return void refuse(reply, hostMissing);
    if (closing && !request.routeOptions.config.isPublic) return void refuse(reply, shuttingDown);
    done();
  });
  addGate(app, service);
  // Handlers read the body themselves, once they know that they want it.
  app.removeAllContentTypeParsers();
  // Fastify remembers which parser a named type has, and works it out anew each time for all others.
  app.addContentTypeParser(['application/json', '*'], (_request, _payload, done) => done(null));

  const routes = routesOf(service, () => closing);
  for (const { method, path, isPublic = false, handler } of routes) {
    app.route({ method, url: path, config: { isPublic }, handler });
  }
  app.addHook('preClose', (done) => {
    closing = true;
    sweepIdleConnections();
    done();
  });
  app.setNotFoundHandler((request, reply) => {
    const methods = methodsOf(routes, request.url.split('?', 1)[0]!);
    if (methods.length === 0) return refuse(reply, noSuchPath);
    return refuse(reply, {
      refusal: 'method_not_allowed',
      message: `${request.method} is not known here; use ${methods.join(', ')}.`,
      headers: { Allow: methods.join(', ') },
    });
  });
  app.setErrorHandler((error, request, reply) => answerError(service, error, request, reply));
  return app;
}

const unmetExpectation: Refusal = {
  refusal: 'expectation_failed',
  message: 'The header Expect can only ask for 100-continue.',
};

const unreadablePath: Refusal = {
  refusal: 'bad_request',
  message: 'The path cannot be read: its percent-encoding is broken.',
};

const noSuchPath: Refusal = {
  refusal: 'not_found',
  message: 'There is nothing at this path; uploads go to POST /v1/data/{type} and POST /user-interactions.',
};

function routesOf(service: Service, isClosing: () => boolean): readonly Route[] {
  return [
    { method: 'POST', path: '/v1/data/:type', handler: postRecords(service) },
    { method: 'GET', path: '/v1/data/:type', handler: getRecords(service) },
    { method: 'GET', path: '/v1/data/:type/:id', handler: getRecord(service) },
    { method: 'POST', path: '/user-interactions', handler: postInteraction(service) },
    { method: 'GET', path: '/user-interactions', handler: getInteractions(service) },
    { method: 'GET', path: '/user-interactions/:id', handler: getInteraction(service) },
    { method: 'GET', path: '/livez', isPublic: true, handler: (_, reply) => reply.send({ status: 'alive' }) },
    {
      method: 'GET',
      path: '/readyz',
      isPublic: true,
      async handler(_, reply) {
        if (isClosing()) return refuse(reply, shuttingDown);
        const isReady = await answersInTime(service);
        return isReady ? reply.send({ status: 'ready' }) : refuse(reply, storeSilent);
      },
    },
  ];
}

const shuttingDown: Refusal = {
  refusal: 'service_unavailable',
  message: 'The service is shutting down.',
  headers: { 'Retry-After': '5' },
};

async function answersInTime(service: Service): Promise<boolean> {
  const timer = new AbortController();
  try {
    const timeout = sleep(PING_TIMEOUT_MS, 'late', { signal: timer.signal }).catch(() => 'late');
    return (await Promise.race([service.store.ping(), timeout])) !== 'late';
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    return false;
  } finally {
    timer.abort();
  }
}

function methodsOf(routes: readonly Route[], path: string): readonly string[] {
  const parts = path.split('/');
  const methods = routes
    .filter((route) => {
      const wanted = route.path.split('/');
      return (
        wanted.length === parts.length &&
        wanted.every((part, at) => part === parts[at] || (part.startsWith(':') && parts[at] !== ''))
      );
    })
    .map(({ method }) => method);
  return methods.includes('GET') ? ['HEAD', ...methods] : methods;
}

function securityHeadersFor({ tls, behindProxy }: Service): Readonly<Record<string, string>> {
  return {
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'no-store',
    'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
    'Referrer-Policy': 'no-referrer',
    ...(tls === null && !behindProxy ? {} : { 'Strict-Transport-Security': 'max-age=31536000' }),
  };
}

function addHeaders(
  request: FastifyRequest,
  reply: FastifyReply,
  securityHeaders: Readonly<Record<string, string>>,
): void {
  reply.headers(securityHeaders).header('X-Request-Id', request.id);
}

function answerError(
  service: Service,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  if (error instanceof StoreUnavailable) {
    service.log('error', { request_id: request.id, cause: error.message }, 'the store is not available');
    return refuse(reply, storeSilent);
  }
  const status = (error as { statusCode?: number }).statusCode ?? 500;
  if (status === refusals.unsupported_media_type.status) return refuse(reply, notJson);
  const name = Object.entries(refusals).find(([, refusal]) => refusal.status === status)?.[0];
  if (status < 500 && name !== undefined) {
    return refuse(reply, { refusal: name as RefusalName, message: (error as Error).message });
  }
  service.log('error', { request_id: request.id, err: error }, 'a request failed unexpectedly');
  return refuse(reply, {
    refusal: 'internal_error',
    message:
      'Something went wrong inside; nothing more is known to the outside. Quote request_id to the operator.',
  });
}

/** For what the HTTP parser itself refuses, before there is a request. */
function answerUnparsed(error: NodeJS.ErrnoException, socket: Socket, headers: Record<string, string>): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const requestId = uuidV7();
  socket.end(rawRefusal(unparsed(error), requestId, { 'X-Request-Id': requestId, ...headers }));
}

const LONGEST_REQUEST_LINE_BYTES = 16 * 1024;
const requestLine = /^([A-Z-]+) \S+ HTTP\/1\.[01]\r\n/;

/** The parser takes whatever is no method that it knows for an invalid one, be it a request or not. */
function beginsWithUnknownMethod(packet: Buffer | undefined): boolean {
  const line = requestLine.exec(packet?.toString('latin1', 0, LONGEST_REQUEST_LINE_BYTES) ?? '');
  return line !== null && !METHODS.includes(line[1]!);
}

function unparsed(error: NodeJS.ErrnoException & { readonly rawPacket?: Buffer }): Refusal {
  if (error.code === 'HPE_HEADER_OVERFLOW') {
    return { refusal: 'header_fields_too_large', message: 'The headers are larger than 16 KiB.' };
  }
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return { refusal: 'request_timeout', message: 'The request took too long to arrive.' };
  }
  if (error.code === 'HPE_INVALID_METHOD' && beginsWithUnknownMethod(error.rawPacket)) {
    const allowed = 'HEAD, GET, POST';
    const message = `This method is not known here; use one of ${allowed}.`;
    return { refusal: 'method_not_allowed', message, headers: { Allow: allowed } };
  }
  if (error.code === 'HPE_INVALID_EOF_STATE') {
    return { refusal: 'bad_request', message: 'The request was cut off before its end; nothing was stored.' };
  }
  return { refusal: 'bad_request', message: 'This is not a request that HTTP/1.1 knows.' };
}
