// What operations answer: the shared parts, and the statuses that every operation of a kind of access may give.

import type { JsonSchema } from '@headgate/catalogue/kinds/kind.ts';
import { keyRunning, keyTaken } from '../answers.ts';
import { headersTooLarge, requestTimedOut, unexpected, unmetExpectation } from '../fixed-refusals.ts';
import { notByHttps, overRate, unauthorized } from '../gate.ts';
import { notJson, tooLarge, tooMuchInFlight } from '../read-body.ts';
import { type Refusal, type RefusalName, refusalBody, refusals } from '../refusals.ts';
import type { Access } from '../routes.ts';
import {
  type Content,
  type Example,
  type Header,
  type Reference,
  type Response,
  refTo,
} from './document-shape.ts';
import { exampleIds } from './example-records.ts';
import type { ApiLimits } from './limits.ts';

export type Responses = Record<string, Response | Reference>;

export const headers = {
  'X-Request-Id': {
    description: 'The id of the request; quote it to the operator.',
    schema: { type: 'string', format: 'uuid' },
    example: exampleIds.request,
  },
  RateLimit: {
    description: 'How many requests are left (`r`), and in how many seconds there are all again (`t`).',
    schema: { type: 'string' },
    example: '"key";r=999;t=1',
  },
  'RateLimit-Policy': {
    description:
      'How many requests the key may make of the process that answers (`q`) in how many seconds (`w`).',
    schema: { type: 'string' },
    example: '"key";q=1000;w=1',
  },
  'Retry-After': {
    description: 'The seconds to wait before the request is sent again.',
    schema: { type: 'string', pattern: '^\\d+$' },
    example: '1',
  },
  'Idempotency-Replayed': {
    description: 'There, and `true`, where this is the first answer to the `Idempotency-Key` again.',
    schema: { type: 'string', const: 'true' },
  },
  'Preference-Applied': {
    description: 'There, and `handling=lenient`, where `Prefer` asked for it.',
    schema: { type: 'string', const: 'handling=lenient' },
  },
  'WWW-Authenticate': {
    description: 'How to authenticate.',
    schema: { type: 'string', const: 'Bearer' },
  },
  Accept: {
    description: 'The type of body that is taken.',
    schema: { type: 'string', const: 'application/json' },
  },
  ETag: {
    description: 'Names this version; send it as `If-None-Match` to be told whether there is a newer one.',
    schema: { type: 'string' },
  },
} as const satisfies Record<string, Header>;

export type HeaderName = keyof typeof headers;

export function headerRefs(names: readonly HeaderName[]): Record<string, Reference> {
  return Object.fromEntries(names.map((name) => [name, refTo('headers', name)]));
}

const alwaysSent: Readonly<Record<Access, readonly HeaderName[]>> = {
  key: ['X-Request-Id', 'RateLimit', 'RateLimit-Policy'],
  open: ['X-Request-Id'],
  probe: ['X-Request-Id'],
};

export function jsonContent(schema: JsonSchema, examples: Readonly<Record<string, Example>> = {}): Content {
  return { 'application/json': { schema, ...(Object.keys(examples).length === 0 ? {} : { examples }) } };
}

export function answered(
  description: string,
  content: Content,
  access: Access,
  further: readonly HeaderName[] = [],
): Response {
  return { description, headers: headerRefs([...alwaysSent[access], ...further]), content };
}

export function refusalExample(refusal: Refusal): Example {
  return {
    summary: refusals[refusal.refusal].error,
    value: refusalBody(refusal, exampleIds.request),
  };
}

export function refused(
  refusal: Refusal,
  access: Access,
  exampleName: string = refusal.refusal,
  description: string = describeRefusal(refusal.refusal),
): Response {
  const named = Object.keys(refusal.headers ?? {}).filter((name): name is HeaderName => name in headers);
  // Without a good key there is no rate to tell of.
  const isAnonymous = access === 'key' && refusal.refusal === 'unauthorized';
  return answered(
    description,
    jsonContent(refTo('schemas', 'Refusal'), { [exampleName]: refusalExample(refusal) }),
    isAnonymous ? 'open' : access,
    named,
  );
}

export function describeRefusal(name: RefusalName): string {
  const { meaning, remedy } = refusals[name];
  return `${meaning} ${remedy}`;
}

/** What may be answered to a rate that is not limited is the same as to the usual one. */
const USUAL_REQUESTS_PER_SECOND = 1000;

/** By their names among the components. */
export function sharedResponses({ maxBodyBytes, rateLimitPerSecond }: ApiLimits) {
  const ratePerSecond = rateLimitPerSecond ?? USUAL_REQUESTS_PER_SECOND;
  return {
    Unauthorized: refused(unauthorized, 'key'),
    RequestTimeout: refused(requestTimedOut, 'open'),
    Conflict: refused(keyRunning, 'key'),
    ContentTooLarge: refused(tooLarge(maxBodyBytes), 'key'),
    UnsupportedMediaType: refused(notJson, 'key'),
    ExpectationFailed: refused(unmetExpectation, 'open'),
    UnprocessableContent: refused(keyTaken, 'key'),
    TooManyRequests: refused(overRate(ratePerSecond, 1), 'key'),
    HeaderFieldsTooLarge: refused(headersTooLarge, 'open'),
    InternalError: refused(unexpected, 'key'),
    ServiceUnavailable: refused(tooMuchInFlight, 'key'),
    NotByHttps: refused(notByHttps, 'open'),
  } satisfies Record<string, Response>;
}

export type SharedResponseName = keyof ReturnType<typeof sharedResponses>;

function shared(names: Readonly<Record<number, SharedResponseName>>): Responses {
  return Object.fromEntries(
    Object.entries(names).map(([status, name]) => [status, refTo('responses', name)]),
  );
}

/** Before any path is looked at. */
const fromAll = shared({
  408: 'RequestTimeout',
  417: 'ExpectationFailed',
  431: 'HeaderFieldsTooLarge',
  500: 'InternalError',
});

const fromKeyed = {
  ...fromAll,
  ...shared({ 401: 'Unauthorized', 429: 'TooManyRequests', 503: 'ServiceUnavailable' }),
};

export const statusesOfAccess: Readonly<Record<Access, Responses>> = {
  key: fromKeyed,
  open: { ...fromAll, ...shared({ 403: 'NotByHttps', 503: 'ServiceUnavailable' }) },
  probe: fromAll,
};

export const statusesOfBodies: Responses = shared({
  409: 'Conflict',
  413: 'ContentTooLarge',
  415: 'UnsupportedMediaType',
  422: 'UnprocessableContent',
});
