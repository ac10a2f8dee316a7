// Refusals in which nothing depends on the request.

import type { Refusal } from './refusals.ts';

export const hostMissing: Refusal = {
  refusal: 'bad_request',
  message: 'The header Host is missing; HTTP/1.1 requires it.',
};

/** The connection ends with it: another server on the way may see the end of such a request elsewhere. */
export const transferCoding: Refusal = {
  refusal: 'bad_request',
  message:
    'The only Transfer-Encoding taken is chunked, in HTTP/1.1; compress a body with Content-Encoding instead.',
  headers: { Connection: 'close' },
};

export const unreadablePath: Refusal = {
  refusal: 'bad_request',
  message: 'The path cannot be read: its percent-encoding is broken.',
};

export const noSuchPath: Refusal = {
  refusal: 'not_found',
  message:
    'There is nothing at this path; uploads go to POST /v1/data/{type} and POST /user-interactions, and /docs ' +
    'describes everything.',
};

const everyMethod = 'HEAD, GET, POST';

/** For a method that no path here knows. */
export const methodUnknown: Refusal = {
  refusal: 'method_not_allowed',
  message: `This method is not known here; use one of ${everyMethod}.`,
  headers: { Allow: everyMethod },
};

export const unmetExpectation: Refusal = {
  refusal: 'expectation_failed',
  message: 'The header Expect can only ask for 100-continue.',
};

export const storeSilent: Refusal = {
  refusal: 'service_unavailable',
  message: 'The store does not answer at this moment; try again shortly.',
  headers: { 'Retry-After': '1' },
};

export const tooManyLists: Refusal = {
  refusal: 'service_unavailable',
  message: 'Too many lists of your organisation are being read at this moment; ask for fewer at once.',
  headers: { 'Retry-After': '1' },
};

export const tooManyLookUps: Refusal = {
  refusal: 'service_unavailable',
  message:
    'Too many single records of your organisation are being read at this moment; ask for fewer at once.',
  headers: { 'Retry-After': '1' },
};

export const listBusy: Refusal = {
  refusal: 'service_unavailable',
  message: 'The list could not be read in time because the store has too much to do; try again shortly.',
  headers: { 'Retry-After': '2' },
};

export const shuttingDown: Refusal = {
  refusal: 'service_unavailable',
  message: 'The service is shutting down.',
  headers: { 'Retry-After': '5' },
};

export const headersTooLarge: Refusal = {
  refusal: 'header_fields_too_large',
  message: 'The headers are larger than 16 KiB.',
};

/** The connection is closed after it: the rest of the request may still come. */
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
  message: 'This is not a request that HTTP/1.1 knows.',
};

export const tooManyWaiting: Refusal = {
  refusal: 'service_unavailable',
  message:
    'This organisation has too many requests waiting at this moment; nothing was stored, send it again shortly.',
  headers: { 'Retry-After': '1' },
};

export const unexpected: Refusal = {
  refusal: 'internal_error',
  message:
    'Something went wrong inside; nothing more is known to the outside. Quote request_id to the operator.',
};
