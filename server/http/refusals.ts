// Every way in which a request is refused as a whole, with its status; answers.ts has those of what was taken in.
// The body is always {error, message, request_id} and, where useful, details.

import type { FastifyReply } from 'fastify';

export const refusals = {
  bad_request: { status: 400, error: 'Bad Request' },
  unauthorized: { status: 401, error: 'Unauthorized' },
  forbidden: { status: 403, error: 'Forbidden' },
  not_found: { status: 404, error: 'Not Found' },
  method_not_allowed: { status: 405, error: 'Method Not Allowed' },
  request_timeout: { status: 408, error: 'Request Timeout' },
  conflict: { status: 409, error: 'Conflict' },
  content_too_large: { status: 413, error: 'Content Too Large' },
  unsupported_media_type: { status: 415, error: 'Unsupported Media Type' },
  expectation_failed: { status: 417, error: 'Expectation Failed' },
  unprocessable_content: { status: 422, error: 'Unprocessable Content' },
  too_many_requests: { status: 429, error: 'Too Many Requests' },
  header_fields_too_large: { status: 431, error: 'Request Header Fields Too Large' },
  internal_error: { status: 500, error: 'Internal Server Error' },
  service_unavailable: { status: 503, error: 'Service Unavailable' },
} as const;

export const JSON_TYPE = 'application/json; charset=utf-8';

export type RefusalName = keyof typeof refusals;

export interface Refusal {
  readonly refusal: RefusalName;
  readonly message: string;
  readonly details?: readonly unknown[];
  readonly headers?: Readonly<Record<string, string>>;
}

export interface RefusalBody {
  readonly error: string;
  readonly message: string;
  readonly request_id: string;
  readonly details?: readonly unknown[];
}

export function isRefusal(value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && 'refusal' in value;
}

export function refusalBody({ refusal, message, details }: Refusal, requestId: string): RefusalBody {
  const { error } = refusals[refusal];
  return { error, message, request_id: requestId, ...(details === undefined ? {} : { details }) };
}

export function refuse(reply: FastifyReply, refusal: Refusal): FastifyReply {
  return reply
    .code(refusals[refusal.refusal].status)
    .headers(refusal.headers ?? {})
    .send(refusalBody(refusal, reply.request.id));
}

/** The bytes of a whole refusal, for a connection whose request could not even be parsed. */
export function rawRefusal(
  refusal: Refusal,
  requestId: string,
  headers: Readonly<Record<string, string>>,
): string {
  const { status, error } = refusals[refusal.refusal];
  const body = JSON.stringify(refusalBody(refusal, requestId));
  const lines = Object.entries({
    ...headers,
    ...refusal.headers,
    'Content-Type': JSON_TYPE,
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${error}\r\n${lines.join('')}\r\n${body}`;
}
