// Defines the refusals that do not depend on the request's content.

import type { Refusal } from './refusals.ts';

export const hostMissing: Refusal = {
  refusal: 'bad_request',
  message: 'The header Host is missing; HTTP/1.1 requires it.',
};

/** This refusal closes the connection, because a proxy in front may disagree on where such a request ends. */
export const transferCoding: Refusal = {
  refusal: 'bad_request',
  message:
    'Transfer-Encoding must be chunked, needs HTTP/1.1 and excludes Content-Length; to compress a body use Content-Encoding.',
  headers: { Connection: 'close' },
};

export const unreadablePath: Refusal = {
  refusal: 'bad_request',
  message: 'The path cannot be read: its percent-encoding is broken.',
};

export const noSuchPath: Refusal = {
  refusal: 'not_found',
  message:
    'There is nothing at this path; upload to POST /v1/data/{type} or POST /user-interactions, or see /docs.',
};

const everyMethod = 'HEAD, GET, POST';

/** The refusal of a method that no path supports. */
export const methodUnknown: Refusal = {
  refusal: 'method_not_allowed',
  message: `This method is not supported; use one of ${everyMethod}.`,
  headers: { Allow: everyMethod },
};

export const unmetExpectation: Refusal = {
  refusal: 'expectation_failed',
  message: 'The header Expect may only be 100-continue.',
};

export const storeSilent: Refusal = {
  refusal: 'service_unavailable',
  message: 'The store does not respond at the moment; try again shortly.',
  headers: { 'Retry-After': '1' },
};

export const tooManyLists: Refusal = {
  refusal: 'service_unavailable',
  message: 'Your organisation is reading too many lists at the moment; request fewer at once.',
  headers: { 'Retry-After': '1' },
};

export const tooManyQueries: Refusal = {
  refusal: 'service_unavailable',
  message: 'Your organisation is running too many queries at the moment; run fewer at once.',
  headers: { 'Retry-After': '1' },
};

export const analyticsOff: Refusal = {
  refusal: 'not_found',
  message: 'Analytics is switched off on this server; the operator can set HEADGATE_ANALYTICS=on.',
};

export const tooManyFollowers: Refusal = {
  refusal: 'service_unavailable',
  message: 'Too many requests of your organisation already wait for changes; use fewer followers.',
  headers: { 'Retry-After': '1' },
};

export const tooManyLookUps: Refusal = {
  refusal: 'service_unavailable',
  message: 'Your organisation is reading too many single records at the moment; request fewer at once.',
  headers: { 'Retry-After': '1' },
};

export const listBusy: Refusal = {
  refusal: 'service_unavailable',
  message: 'The list could not be read in time because the store is busy; try again shortly.',
  headers: { 'Retry-After': '2' },
};

export const shuttingDown: Refusal = {
  refusal: 'service_unavailable',
  message: 'The service is shutting down.',
  headers: { 'Retry-After': '5' },
};

/** The parser refuses a head with more headers. Its limit of 16 KiB alone would admit 16,000 of them. */
export const MOST_HEADERS = 1000;
export const headersTooLarge: Refusal = {
  refusal: 'header_fields_too_large',
  message: `The headers are larger than 16 KiB, or there are more than ${MOST_HEADERS}.`,
};

/** This refusal closes the connection, because the rest of the request may still arrive. */
export const requestTimedOut: Refusal = {
  refusal: 'request_timeout',
  message: 'The request took too long to arrive; nothing was stored, send it again.',
  headers: { Connection: 'close' },
};

export const requestCutOff: Refusal = {
  refusal: 'bad_request',
  message: 'The request was cut off before its end; nothing was stored.',
};

export const notHttp: Refusal = {
  refusal: 'bad_request',
  message: 'This is not a valid HTTP/1.1 request.',
};

export const tooManyWaiting: Refusal = {
  refusal: 'service_unavailable',
  message:
    'Your organisation has too many requests waiting at the moment; nothing was stored, send it again shortly.',
  headers: { 'Retry-After': '1' },
};

export const unexpected: Refusal = {
  refusal: 'internal_error',
  message:
    'An unexpected error occurred. Give request_id to the operator, who can find the cause in the log.',
};
