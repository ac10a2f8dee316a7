// Lists every way in which a whole request is refused, with its status. The body of a refusal is {error, message,
// request_id}, and sometimes has more. The statuses of uploads are in ingest-responses.ts.

import type { FastifyReply } from 'fastify';

interface RefusalDescription {
  readonly status: number;
  readonly error: string;
  readonly meaning: string;
  readonly remedy: string;
}

export const refusals = {
  bad_request: {
    status: 400,
    error: 'Bad Request',
    meaning:
      'The request cannot be read: it is not JSON, an object has the same key twice, `records` is missing, empty or ' +
      'too long, there are far more objects, arrays, keys or elements than such a request needs, there are thousands of ' +
      'keys with escapes or of very long numbers, a query parameter is wrong, a header is repeated that may occur only once, ' +
      '`Transfer-Encoding` is not `chunked`, the body comes in very many tiny chunks, or the request was cut off. ' +
      'Or the interaction was not accepted.',
    remedy: 'Correct what `message` and `details` name, then send the request again.',
  },
  unauthorized: {
    status: 401,
    error: 'Unauthorized',
    meaning: 'The key is missing, wrong, expired or revoked.',
    remedy: 'Send `Authorization: Bearer <API_KEY>`; ask the operator for a new key.',
  },
  forbidden: {
    status: 403,
    error: 'Forbidden',
    meaning: 'The key lacks the scope that `message` names, or the request did not use HTTPS.',
    remedy: 'Ask the operator for a key with that scope; use HTTPS.',
  },
  not_found: {
    status: 404,
    error: 'Not Found',
    meaning: 'There is no such path or type, or no such record or segment in the organisation.',
    remedy: 'Check the path. If the type is unknown, `message` lists the known ones.',
  },
  method_not_allowed: {
    status: 405,
    error: 'Method Not Allowed',
    meaning: 'The path does not support this method.',
    remedy: 'Use one of the methods that the header `Allow` lists.',
  },
  not_acceptable: {
    status: 406,
    error: 'Not Acceptable',
    meaning: 'The response has none of the formats that the header `Accept` names.',
    remedy: 'Use one of the formats that `message` lists, or leave the header out to get JSON.',
  },
  request_timeout: {
    status: 408,
    error: 'Request Timeout',
    meaning: 'The request took too long to arrive; nothing was stored.',
    remedy: 'Send it again, with fewer records if the connection is slow.',
  },
  conflict: {
    status: 409,
    error: 'Conflict',
    meaning:
      'A request with the same `Idempotency-Key` is still running, the segment is being evaluated, or another segment ' +
      'uses it.',
    remedy:
      'Wait for the number of seconds in `Retry-After`, then send it again. Do not delete a segment that is used.',
  },
  gone: {
    status: 410,
    error: 'Gone',
    meaning:
      'The changes after the position `after` are not available, because they are older than the server keeps changes, ' +
      'or because the position is beyond the last change.',
    remedy: 'Start over: note `latest`, read everything, then follow from there.',
  },
  content_too_large: {
    status: 413,
    error: 'Content Too Large',
    meaning: 'The body is too large after decompression.',
    remedy: 'Send fewer records in each request.',
  },
  unsupported_media_type: {
    status: 415,
    error: 'Unsupported Media Type',
    meaning:
      'The body is not `application/json` in UTF-8, or its compression is not one of gzip, br and zstd.',
    remedy: 'Send JSON, with `Content-Type: application/json`.',
  },
  expectation_failed: {
    status: 417,
    error: 'Expectation Failed',
    meaning: 'The header `Expect` is not `100-continue`.',
    remedy: 'Leave the header out.',
  },
  unprocessable_content: {
    status: 422,
    error: 'Unprocessable Content',
    meaning: 'The `Idempotency-Key` was used with another body or another `Prefer`.',
    remedy: 'Use a new key for a new request.',
  },
  too_many_requests: {
    status: 429,
    error: 'Too Many Requests',
    meaning: 'The key exceeds its limit of requests per second.',
    remedy: 'Wait for the number of seconds in `Retry-After`. Send more records in each request.',
  },
  header_fields_too_large: {
    status: 431,
    error: 'Request Header Fields Too Large',
    meaning: 'The headers are larger than 16 KiB, or there are more than 1000.',
    remedy: 'Send fewer or shorter headers.',
  },
  internal_error: {
    status: 500,
    error: 'Internal Server Error',
    meaning: 'The store did not confirm the interaction, or something unexpected happened.',
    remedy:
      'Send it again unchanged, with increasing delays. If it keeps failing, give the operator the `request_id`.',
  },
  service_unavailable: {
    status: 503,
    error: 'Service Unavailable',
    meaning:
      'Too much is being uploaded or listed at the moment, the store does not respond, or the service is stopping.',
    remedy: 'Wait for the number of seconds in `Retry-After`, then send it again.',
  },
} as const satisfies Record<string, RefusalDescription>;

export const JSON_TYPE = 'application/json; charset=utf-8';
export const NDJSON_TYPE = 'application/x-ndjson; charset=utf-8';
export const CSV_TYPE = 'text/csv; charset=utf-8';

export type RefusalName = keyof typeof refusals;

export interface Refusal {
  readonly refusal: RefusalName;
  readonly message: string;
  readonly details?: readonly unknown[];
  /** The number of the ledger's last entry, if the changes after a position are not available. */
  readonly latest?: number;
  /** The number of characters before the error in the text of an SQL query. */
  readonly position?: number;
  /** The path of the node that is not valid in the condition of a segment. */
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface RefusalBody {
  readonly error: string;
  readonly message: string;
  readonly request_id: string;
  readonly details?: readonly unknown[];
  readonly latest?: number;
  readonly position?: number;
  readonly path?: string;
}

export function isRefusal(value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && 'refusal' in value;
}

export function refusalBody(given: Refusal, requestId: string): RefusalBody {
  const { refusal, message, details, latest, position, path } = given;
  const { error } = refusals[refusal];
  return {
    error,
    message,
    request_id: requestId,
    ...(details === undefined ? {} : { details }),
    ...(latest === undefined ? {} : { latest }),
    ...(position === undefined ? {} : { position }),
    ...(path === undefined ? {} : { path }),
  };
}

export function refuse(reply: FastifyReply, refusal: Refusal): FastifyReply {
  return reply
    .code(refusals[refusal.refusal].status)
    .headers(refusal.headers ?? {})
    .send(refusalBody(refusal, reply.request.id));
}

/** Returns a whole HTTP response with the refusal, for a connection on which no handler can respond. */
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
