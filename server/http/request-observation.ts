// Watches every request from the arrival of its headers to the end of its response, and reports it to the observer
// once.

import type { Socket } from 'node:net';
import { isUploadTypeName } from '@headgate/catalogue/record-types.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { EndedRequest, IngestSummary } from '../observe/ended-request.ts';
import { epochMs } from '../observe/epoch-ms.ts';
import type { Observer } from '../observe/observer.ts';
import { readTraceParent } from '../observe/trace-parent.ts';
import type { BodyTimes, RequestSpan } from '../observe/traces.ts';
import { isInRequest } from './connections/connection-state.ts';
import { refusals } from './refusals.ts';

const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
const UNMATCHED = 'unmatched';
const UNPARSED = 'unparsed';

/** The name of the refusal with each status. No two refusals have the same status. */
const codeByStatus = new Map(Object.entries(refusals).map(([name, { status }]) => [status as number, name]));
const shownRoutes = new Map<string, string>();

/** The state of a request while it runs. */
export class Watched {
  readonly startedAtMs = performance.now();
  readonly traceId: string | null;
  readonly span: RequestSpan | null;
  bodyBytes = 0;
  /** Null if the request is not traced. */
  bodyTimes: BodyTimes | null = null;
  summary: IngestSummary | null = null;
  /**
   * True while an ingest thread works on the request. If the client disconnects meanwhile, the request is reported when
   * the thread is done, so that the report contains the result.
   */
  isWorkedOn = false;
  isClosed = false;
  isReported = false;
  /** Called when the response has been sent or the connection is closed. */
  onClose: (() => void)[] = [];

  constructor(traceId: string | null, span: RequestSpan | null) {
    this.traceId = traceId;
    this.span = span;
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Null until the first hook has seen the request. */
    watched: Watched | null;
  }
}

export function watch(observer: Observer, request: FastifyRequest, reply: FastifyReply): void {
  const { traceparent, tracestate } = request.headers;
  const parent = traceparent === undefined ? null : readTraceParent(String(traceparent));
  const span =
    observer.traces?.begin(
      parent,
      tracestate === undefined ? undefined : String(tracestate),
      request.method,
    ) ?? null;
  const watched = new Watched(span?.traceId ?? parent?.traceId ?? null, span);
  request.watched = watched;
  observer.requestsInProgress++;
  reply.raw.on('close', () => {
    watched.isClosed = true;
    for (const giveBack of watched.onClose) giveBack();
    observer.requestsInProgress--;
    if (!watched.isWorkedOn) report(observer, request, reply, watched);
  });
}

/** Calls `giveBack` when the response is sent or the connection closed, or at once if that has already happened. */
export function whenClosed({ watched }: FastifyRequest, giveBack: () => void): void {
  if (watched!.isClosed) giveBack();
  else watched!.onClose.push(giveBack);
}

/**
 * Calls `stop` when the client closes its side of the connection, as a client that was ended does, and in any case when
 * the request is closed.
 */
export function whenLeft(request: FastifyRequest, stop: () => void): void {
  const { socket } = request.raw;
  socket.once('end', stop);
  whenClosed(request, () => {
    socket.off('end', stop);
    stop();
  });
  if (socket.readableEnded) stop();
}

/** Returns a signal that is aborted when the client leaves. */
export function leftSignal(request: FastifyRequest): AbortSignal {
  const left = new AbortController();
  whenLeft(request, () => left.abort());
  return left.signal;
}

/** Notes that the body has arrived completely. */
export function noteBody({ watched }: FastifyRequest, byteLength: number, readAtMs: number): void {
  watched!.bodyBytes = byteLength;
  if (watched!.span !== null) watched!.bodyTimes = { readAtMs, readUntilMs: epochMs() };
}

/** Notes that an ingest thread is about to get the request. The caller must call `noteWorkDone` afterwards. */
export function noteWork({ watched }: FastifyRequest): void {
  watched!.isWorkedOn = true;
}

/** Notes that the ingest thread is done. `summary` is null if the whole request was refused or the thread failed. */
export function noteWorkDone(
  observer: Observer,
  request: FastifyRequest,
  reply: FastifyReply,
  summary: IngestSummary | null,
): void {
  const watched = request.watched!;
  watched.isWorkedOn = false;
  watched.summary = summary;
  if (summary !== null) observer.metrics?.taken(typeOf(request), summary);
  if (watched.isClosed) report(observer, request, reply, watched);
}

function report(observer: Observer, request: FastifyRequest, reply: FastifyReply, watched: Watched): void {
  if (!observer.isWatching || watched.isReported) return;
  watched.isReported = true;
  const ended = endOf(request, reply, watched);
  observer.requestEnded(ended);
  watched.span?.end(ended, watched.bodyTimes);
}

function endOf(request: FastifyRequest, { raw }: FastifyReply, watched: Watched): EndedRequest {
  const { method } = request;
  const { caller } = request;
  const { summary, traceId, bodyBytes, startedAtMs } = watched;
  const { url, config } = request.routeOptions;
  const status = raw.headersSent ? raw.statusCode : null;
  return {
    requestId: request.id,
    traceId,
    method: knownMethods.has(method) ? method : 'OTHER',
    route: url === undefined ? UNMATCHED : shownRoute(url),
    status,
    isCutOff: !raw.writableFinished,
    isProbe: config.isProbe === true,
    orgId: caller === null ? null : caller.orgId,
    keyId: caller === null ? null : caller.keyId,
    type: typeOf(request),
    summary,
    code: summary === null && status !== null ? (codeByStatus.get(status) ?? null) : null,
    bodyBytes,
    durationMs: performance.now() - startedAtMs,
  };
}

/**
 * Reports a refusal on a connection that has no request. Does nothing if the connection has one, because the refusal is
 * then reported with that request.
 */
export function reportUnparsed(observer: Observer, socket: Socket, requestId: string, status: number): void {
  if (!observer.isWatching || isInRequest(socket)) return;
  observer.requestEnded({
    requestId,
    traceId: null,
    method: 'OTHER',
    route: UNPARSED,
    status,
    isCutOff: false,
    isProbe: false,
    orgId: null,
    keyId: null,
    type: null,
    summary: null,
    code: codeByStatus.get(status) ?? null,
    bodyBytes: 0,
    durationMs: 0,
  });
}

/** Returns the route as the documentation writes it: /v1/data/{type}. */
export function shownRoute(path: string): string {
  const known = shownRoutes.get(path);
  if (known !== undefined) return known;
  const shown = path.replace(/:(\w+)/g, '{$1}');
  shownRoutes.set(path, shown);
  return shown;
}

function typeOf({ params }: FastifyRequest): EndedRequest['type'] {
  const type = (params as { readonly type?: string } | null)?.type;
  return type !== undefined && isUploadTypeName(type) ? type : null;
}
