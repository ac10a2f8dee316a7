// Describes the parts that responses share, and the statuses that every operation with the same access can return.

import type { JsonSchema } from '@headgate/catalogue/kinds/kind.ts';
import { notJson, tooLarge, tooMuchInFlight } from '../body/read-body.ts';
import { headersTooLarge, requestTimedOut, unexpected, unmetExpectation } from '../fixed-refusals.ts';
import { notByHttps, overRate, unauthorized } from '../gate.ts';
import { mediaType } from '../header-values.ts';
import { keyRunning, keyTaken } from '../ingest-responses.ts';
import { JSON_TYPE, type Refusal, type RefusalName, refusalBody, refusals } from '../refusals.ts';
import type { Access } from '../routes.ts';
import type { ApiLimits } from './document.ts';
import { type Content, type Example, type Reference, type Response, refTo } from './document-shape.ts';
import { EXAMPLE_SEQ, exampleIds, exampleRecordedAt } from './example-records.ts';

export type Responses = Record<string, Response | Reference>;

function header(description: string, rules: JsonSchema = {}, example?: string) {
  return { description, schema: { type: 'string', ...rules }, example };
}

export const headers = {
  'X-Request-Id': header(
    'The id of the request. Give it to the operator if you have questions.',
    { format: 'uuid' },
    exampleIds.request,
  ),
  RateLimit: header(
    'The number of requests that are left (`r`), and the seconds until all are available again (`t`).',
    {},
    '"key";r=999;t=1',
  ),
  'RateLimit-Policy': header(
    'The number of requests (`q`) that the key may make to one process of the server in a number of seconds (`w`).',
    {},
    '"key";q=1000;w=1',
  ),
  'Retry-After': header('The seconds to wait before sending the request again.', { pattern: '^\\d+$' }, '1'),
  'Idempotency-Replayed': header(
    '`true` if this is the stored response of an earlier request with the same `Idempotency-Key`.',
    { const: 'true' },
  ),
  'Preference-Applied': header('`handling=lenient` if `Prefer` asked for it.', { const: 'handling=lenient' }),
  'Headgate-As-Of': header(
    'What the query has seen, as JSON. The same as `as_of`, which only JSON responses have.',
    {},
    JSON.stringify({ seq: EXAMPLE_SEQ, at: exampleRecordedAt, complete: true }),
  ),
  'WWW-Authenticate': header('How to authenticate.', { const: 'Bearer' }),
  Accept: header('The accepted type of body.', { const: 'application/json' }),
  ETag: header('Identifies this version. Send it as `If-None-Match` to get a 304 if there is no newer one.'),
};

export type HeaderName = keyof typeof headers;

export function headerRefs(names: readonly HeaderName[]): Record<string, Reference> {
  return Object.fromEntries(names.map((name) => [name, refTo('headers', name)]));
}

export const openHeaders: readonly HeaderName[] = ['X-Request-Id'];
/** The headers of the responses to requests with a valid key. */
export const keyHeaders: readonly HeaderName[] = [...openHeaders, 'RateLimit', 'RateLimit-Policy'];

export function jsonContent(schema: JsonSchema, examples: Readonly<Record<string, Example>> = {}): Content {
  return { 'application/json': { schema, ...(Object.keys(examples).length === 0 ? {} : { examples }) } };
}

/** Adds the other types that the header Accept can ask for. Those with a character set are texts. */
export function inTypes(types: readonly string[], response: Response): Response {
  const others = types.filter((type) => type !== JSON_TYPE);
  const added = others.map((type) => [
    mediaType(type),
    type.includes('charset=') ? { schema: { type: 'string' } } : {},
  ]);
  return { ...response, content: { ...response.content!, ...Object.fromEntries(added) } };
}

export function answered(description: string, content: Content, names = keyHeaders): Response {
  return { description, headers: headerRefs(names), content };
}

export function refusalExample(refusal: Refusal): Example {
  return {
    summary: refusals[refusal.refusal].error,
    value: refusalBody(refusal, exampleIds.request),
  };
}

export function refused(
  refusal: Refusal,
  names = keyHeaders,
  exampleName: string = refusal.refusal,
  description: string = describeRefusal(refusal.refusal),
): Response {
  const own = Object.keys(refusal.headers ?? {}).filter((name): name is HeaderName => name in headers);
  const content = jsonContent(refTo('schemas', 'Refusal'), { [exampleName]: refusalExample(refusal) });
  return answered(description, content, [...names, ...own]);
}

export function describeRefusal(name: RefusalName): string {
  const { meaning, remedy } = refusals[name];
  return `${meaning} ${remedy}`;
}

/** The rate limit that the example shows if the server has no rate limit. */
const USUAL_REQUESTS_PER_SECOND = 1000;

/** Returns the responses by their names in the document's components. */
export function sharedResponses({ maxBodyBytes, rateLimitPerSecond }: ApiLimits) {
  const ratePerSecond = rateLimitPerSecond ?? USUAL_REQUESTS_PER_SECOND;
  return {
    Unauthorized: refused(unauthorized, openHeaders),
    RequestTimeout: refused(requestTimedOut, openHeaders),
    Conflict: refused(keyRunning),
    ContentTooLarge: refused(tooLarge(maxBodyBytes)),
    UnsupportedMediaType: refused(notJson),
    ExpectationFailed: refused(unmetExpectation, openHeaders),
    UnprocessableContent: refused(keyTaken),
    TooManyRequests: refused(overRate(ratePerSecond, 1)),
    HeaderFieldsTooLarge: refused(headersTooLarge, openHeaders),
    InternalError: refused(unexpected),
    ServiceUnavailable: refused(tooMuchInFlight),
    NotByHttps: refused(notByHttps, openHeaders),
  } satisfies Record<string, Response>;
}

export type SharedResponseName = keyof ReturnType<typeof sharedResponses>;

function shared(names: Readonly<Record<number, SharedResponseName>>): Responses {
  return Object.fromEntries(
    Object.entries(names).map(([status, name]) => [status, refTo('responses', name)]),
  );
}

/** The responses that every path can return. */
const fromAll = shared({
  408: 'RequestTimeout',
  417: 'ExpectationFailed',
  431: 'HeaderFieldsTooLarge',
  500: 'InternalError',
});

export const statusesOfAccess: Readonly<Record<Access, Responses>> = {
  key: { ...fromAll, ...shared({ 401: 'Unauthorized', 429: 'TooManyRequests', 503: 'ServiceUnavailable' }) },
  open: { ...fromAll, ...shared({ 403: 'NotByHttps', 503: 'ServiceUnavailable' }) },
  probe: fromAll,
};

export const statusesOfBodies: Responses = shared({
  413: 'ContentTooLarge',
  415: 'UnsupportedMediaType',
});

export const statusesOfWrites: Responses = {
  ...statusesOfBodies,
  ...shared({ 409: 'Conflict', 422: 'UnprocessableContent' }),
};
