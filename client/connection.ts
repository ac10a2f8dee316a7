// Calls the server: sends a request with the API key, retries temporary failures, and returns the parsed response or
// throws an error.

import {
  AbortedError,
  BrokenOffError,
  ForbiddenError,
  GoneError,
  type Refusal,
  RefusedError,
  ResponseTooLargeError,
  UnauthorizedError,
  UnreachableError,
} from './errors.ts';
import { durationFrom, shown } from './option-checks.ts';
import {
  Patience,
  type RetryNotice,
  type RetryOptions,
  type RetryRules,
  retryAfterMs,
  retryRules,
} from './patience.ts';
import { type Reader, readRefusal } from './responses.ts';

export interface ConnectionOptions {
  /** The address of the server, such as `https://data.example.com`. It may include a path prefix. */
  url: string | URL;
  apiKey: string;
  /** Replaces the platform's `fetch`. */
  fetch?: typeof globalThis.fetch | undefined;
  retry?: RetryOptions | undefined;
  /** The timeout of one attempt, including reading the response. Default: 2 minutes. */
  requestTimeoutMs?: number | undefined;
  /** The User-Agent header of every request. It is ignored in browsers, which send their own header. */
  userAgent?: string | undefined;
}

export interface ReadOptions {
  signal?: AbortSignal | undefined;
  onRetry?: ((retry: RetryNotice) => void) | undefined;
}

/** Lets the caller control a call while it runs. Callbacks may be asynchronous, and are awaited. */
export interface Control extends ReadOptions {
  /** The retry budget, if several calls share the same one. By default each call has its own budget. */
  readonly patience?: Patience;
}

export interface ApiCall<Result> extends Control {
  /** The path relative to the server's address, without a leading slash. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** How long the server may wait before it responds. It is added to the timeout of one attempt. */
  readonly waitMs?: number;
  /** By default, a request with a body is a POST, and one without a body is a GET. */
  readonly method?: 'POST' | 'PUT' | 'DELETE';
  /** The JSON of the request. */
  readonly body?: Uint8Array<ArrayBuffer>;
  readonly encoding?: 'gzip' | null;
  readonly idempotencyKey?: string | null;
  readonly lenient?: boolean | undefined;
  /** Called if the server replayed the response to an earlier request with the same idempotency key. */
  readonly onReplayed?: (() => void) | undefined;
  readonly read: Reader<Result>;
}

/** A call whose response is passed on as it arrives. */
export interface StreamCall extends Control {
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer>;
  /** The media type of the response. */
  readonly accept: string;
}

/** Why an attempt failed. The next attempt may succeed. */
export interface Failure {
  readonly reason: string;
  readonly cause: unknown;
  readonly retryAfterMs: number | null;
}

interface Received {
  readonly response: Response;
  readonly text: string;
}

/** A response whose body has begun to arrive. */
export interface Begun {
  readonly headers: Headers;
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
}

/** The version of this package. It is sent in the User-Agent header. */
export const CLIENT_VERSION = '0.1.0';
const DEFAULT_TIMEOUT_MS = 120_000;
/**
 * The longest response that is kept in memory. The longest ones of Headgate have about 30 MB: those to uploads whose
 * records are all invalid. Only the JSON result of a query can be longer.
 */
const LONGEST_RESPONSE_BYTES = 128 * 1024 * 1024;
const LONGEST_QUOTE_CHARACTERS = 200;
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const errorClasses: Readonly<Record<number, typeof RefusedError>> = {
  401: UnauthorizedError,
  403: ForbiddenError,
};
const GONE_STATUS = 410;

export class Connection {
  readonly #base: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #fetch: typeof globalThis.fetch;
  readonly #retry: RetryRules;
  readonly #endlessRetry: RetryRules;
  readonly #timeoutMs: number;

  constructor({ url, apiKey, fetch, retry, requestTimeoutMs, userAgent }: ConnectionOptions) {
    this.#base = baseOf(url);
    this.#headers = {
      Authorization: `Bearer ${checkedKey(apiKey)}`,
      // Not set in browsers, because they send their own header, and CORS would have to allow a different one.
      ...(isBrowser() ? {} : { 'User-Agent': checkedUserAgent(userAgent) }),
    };
    this.#fetch = fetch ?? globalThis.fetch;
    if (typeof this.#fetch !== 'function') {
      throw new TypeError(`fetch must be a function, not ${shown(this.#fetch)}`);
    }
    this.#retry = retryRules(retry);
    this.#endlessRetry = retryRules({ ...retry, patienceMs: retry?.patienceMs ?? Infinity });
    this.#timeoutMs = durationFrom('requestTimeoutMs', requestTimeoutMs, DEFAULT_TIMEOUT_MS, 1);
  }

  newPatience(): Patience {
    return new Patience(this.#retry);
  }

  /** Returns a retry budget without an end, unless the caller has set one. */
  newEndlessPatience(): Patience {
    return new Patience(this.#endlessRetry);
  }

  async call<Result>(call: ApiCall<Result>): Promise<Result> {
    const control = { ...call, patience: call.patience ?? this.newPatience() };
    for (;;) {
      const received = await this.#exchange(call, null);
      const read = 'reason' in received ? received : await this.#read(call, received);
      if ('result' in read) return read.result;
      await this.pause(read, control);
    }
  }

  /**
   * Resolves to the response as soon as its body begins. Temporary failures are retried only until then. Reading
   * the body throws an AbortedError if the call was aborted, and a BrokenOffError if the body is not complete.
   */
  async stream(call: StreamCall): Promise<Begun> {
    const control = { ...call, patience: call.patience ?? this.newPatience() };
    const refused: ApiCall<never> = { ...call, read: () => undefined };
    for (;;) {
      const received = await this.#exchange(refused, call.accept);
      if ('stream' in received) return received;
      const failure = 'reason' in received ? received : await this.#read(refused, received);
      if ('reason' in failure) await this.pause(failure, control);
    }
  }

  /** Waits before the next attempt. Throws an UnreachableError if there are no attempts or no time left. */
  async pause(
    failure: Failure,
    { patience, signal, onRetry }: Control & { readonly patience: Patience },
  ): Promise<void> {
    const pauseMs = patience.pauseMs(failure.retryAfterMs);
    const { failures, elapsedMs } = patience;
    if (pauseMs === null) {
      const tries = failures === 1 ? 'one try' : `${failures} tries in ${Math.round(elapsedMs / 1000)} s`;
      const message = `${this.#base.href} failed after ${tries}: ${failure.reason}`;
      throw new UnreachableError(message, failures, failure.cause);
    }
    await onRetry?.({ attempt: failures, pauseMs, reason: failure.reason });
    await sleep(pauseMs, signal);
  }

  /** Throws a RefusedError if the server refused the request for good. */
  async #read<Result>(call: ApiCall<Result>, received: Received): Promise<{ result: Result } | Failure> {
    const { status, headers } = received.response;
    const isReplayed = headers.get('Idempotency-Replayed') === 'true';
    const body = parsed(received.text);
    const result = call.read(status, body);
    if (result !== undefined) {
      if (isReplayed) await call.onReplayed?.();
      return { result };
    }
    const refusal = readRefusal(status, body) ?? this.#strangerOf(received);
    const error = errorOf(refusal, isReplayed);
    const waitMs = retryAfterMs(headers.get('Retry-After'), Date.now());
    if (!isWorthRepeating(status, waitMs)) throw error;
    return { reason: `${status} ${refusal.message}`, cause: error, retryAfterMs: waitMs };
  }

  /**
   * Sends the request and reads the response, within the timeout of one attempt. A response of the type `streamed` only
   * has to begin within the timeout.
   */
  async #exchange<Result>(call: ApiCall<Result>, streamed: null): Promise<Received | Failure>;
  async #exchange<Result>(call: ApiCall<Result>, streamed: string): Promise<Received | Begun | Failure>;
  async #exchange<Result>(
    call: ApiCall<Result>,
    streamed: string | null,
  ): Promise<Received | Begun | Failure> {
    const { signal, waitMs = 0 } = call;
    const url = this.#urlOf(call);
    const timeoutMs = Math.min(this.#timeoutMs + waitMs, LONGEST_TIMER_MS);
    if (signal?.aborted) throw new AbortedError(signal.reason);
    const controller = new AbortController();
    const abort = (): void => controller.abort();
    signal?.addEventListener('abort', abort, { once: true });
    const stopListening = (): void => signal?.removeEventListener('abort', abort);
    let isLate = false;
    let isStream = false;
    const timer = setTimeout(() => {
      isLate = true;
      abort();
    }, timeoutMs);
    // `fetch` is copied to a variable, because browsers refuse to run it as a method of another object.
    const fetch = this.#fetch;
    try {
      const response = await fetch(
        url,
        this.#requestOf(call, streamed ?? 'application/json', controller.signal),
      );
      isStream = streamed !== null && response.ok && mediaTypeOf(response) === streamed;
      if (isStream) {
        return { headers: response.headers, stream: streamOf(response.body!, signal, stopListening) };
      }
      const text = await textOf(response);
      if (text !== null) return { response, text };
    } catch (cause) {
      if (signal?.aborted) throw new AbortedError(signal.reason);
      const reason = isLate ? `no response within ${timeoutMs / 1000} s` : networkReason(cause);
      return { reason, cause, retryAfterMs: null };
    } finally {
      clearTimeout(timer);
      if (!isStream) stopListening();
    }
    // Closes the connection, because the rest of the response would still arrive.
    abort();
    throw new ResponseTooLargeError(url.origin + url.pathname, LONGEST_RESPONSE_BYTES);
  }

  #urlOf<Result>({ path, query }: ApiCall<Result>): URL {
    const url = new URL(path, this.#base);
    for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value);
    return url;
  }

  #requestOf<Result>(call: ApiCall<Result>, accept: string, signal: AbortSignal): RequestInit {
    const { body, encoding, idempotencyKey, lenient } = call;
    return {
      method: call.method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        ...this.#headers,
        Accept: accept,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(encoding ? { 'Content-Encoding': encoding } : {}),
        ...(typeof idempotencyKey === 'string' ? { 'Idempotency-Key': idempotencyKey } : {}),
        ...(lenient ? { Prefer: 'handling=lenient' } : {}),
      },
      ...(body === undefined ? {} : { body }),
      // Redirects are not followed, because they could turn a POST into a GET.
      redirect: 'manual',
      cache: 'no-store',
      credentials: 'omit',
      signal,
    };
  }

  /** Returns a refusal for a response that is not from Headgate. */
  #strangerOf({ response: { status, headers }, text }: Received): Refusal {
    const location = headers.get('Location');
    const isRedirect = status === 0 || (status >= 300 && status < 400);
    const message = isRedirect
      ? `${this.#base.href} redirects to ${location === null ? 'another address' : cut(location)}; give the client the address of the server itself`
      : `the response (status ${status}) is not from Headgate: ${JSON.stringify(cut(text))}`;
    return { status, error: null, message, requestId: null, details: [] };
  }
}

function mediaTypeOf({ headers }: Response): string {
  const [type] = (headers.get('Content-Type') ?? '').split(';', 1) as [string];
  return type.trim().toLowerCase();
}

/** Resolves to the text of the body, or to null, without reading any further, if it is too long. */
async function textOf({ body }: Response): Promise<string | null> {
  if (body === null) return '';
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  for (let readBytes = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    readBytes += value.byteLength;
    if (readBytes > LONGEST_RESPONSE_BYTES) return null;
    text += decoder.decode(value, { stream: true });
  }
}

/** Passes a body on as it is read, with the client's errors instead of those of `fetch`. */
function streamOf(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  signal: AbortSignal | undefined,
  onEnd: () => void,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) return controller.enqueue(value);
          onEnd();
          controller.close();
        } catch (cause) {
          onEnd();
          controller.error(signal?.aborted ? new AbortedError(signal.reason) : new BrokenOffError(cause));
        }
      },
      cancel(reason) {
        onEnd();
        return reader.cancel(reason);
      },
    },
    // Nothing is read ahead of the reader of the stream.
    { highWaterMark: 0 },
  );
}

function errorOf(refusal: Refusal, isReplayed: boolean): RefusedError {
  const { status, latest } = refusal;
  if (status === GONE_STATUS && latest !== undefined) {
    return new GoneError({ ...refusal, latest }, isReplayed);
  }
  return new (errorClasses[status] ?? RefusedError)(refusal, isReplayed);
}

/**
 * Returns a unique idempotency key. It is not a UUID, because crypto.randomUUID is not available to pages loaded by
 * plain HTTP.
 */
export function randomKey(): string {
  return hexOf(crypto.getRandomValues(new Uint8Array(16)));
}

/** Returns a new UUIDv7. */
export function newUuid(): string {
  return orderedUuid(Date.now(), crypto.getRandomValues(new Uint8Array(10)), 7);
}

/**
 * Returns a UUID that begins with a number of up to 48 bits, so that ids increase with the number, which databases store
 * faster. The rest is the first ten given bytes, except for the version and the variant.
 */
export function orderedUuid(number: number, given: Uint8Array, version: number): string {
  const bytes = given.slice(0, 10);
  bytes[0] = (bytes[0]! & 0x0f) | (version << 4);
  bytes[2] = (bytes[2]! & 0x3f) | 0x80;
  const digits = number.toString(16).padStart(12, '0') + hexOf(bytes);
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function baseOf(given: string | URL): URL {
  const url = URL.canParse(String(given)) ? new URL(given) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new TypeError(
      `url must be an address such as https://data.example.com, not ${JSON.stringify(String(given))}`,
    );
  }
  if (url.username !== '' || url.password !== '') {
    throw new TypeError('url must not contain a user name or a password; Headgate accepts only an API key');
  }
  url.search = '';
  url.hash = '';
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}

function checkedKey(apiKey: string): string {
  if (typeof apiKey === 'string' && /^[\x21-\x7e]+$/.test(apiKey)) return apiKey;
  throw new TypeError('apiKey must be a Headgate API key, which has only visible ASCII characters');
}

function checkedUserAgent(given: string | undefined): string {
  const userAgent = given ?? `headgate-client/${CLIENT_VERSION}`;
  if (typeof userAgent === 'string' && /^[\x20-\x7e]+$/.test(userAgent)) return userAgent;
  throw new TypeError(`userAgent must be ASCII characters in one line, not ${shown(userAgent)}`);
}

function isBrowser(): boolean {
  return 'document' in globalThis || 'WorkerGlobalScope' in globalThis;
}

function isWorthRepeating(status: number, waitMs: number | null): boolean {
  return status === 408 || status === 429 || status >= 500 || (status === 409 && waitMs !== null);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function cut(text: string): string {
  return text.length > LONGEST_QUOTE_CHARACTERS ? `${text.slice(0, LONGEST_QUOTE_CHARACTERS)}…` : text;
}

/** Returns a message that includes the cause, because in Node the error's own message is only "fetch failed". */
function networkReason(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: { code?: string; message?: string } };
  const more = cause?.code ?? cause?.message;
  return more === undefined ? `network error: ${message}` : `network error: ${message} (${more})`;
}

function sleep(pauseMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(new AbortedError(signal.reason));
    const abort = (): void => {
      clearTimeout(timer);
      reject(new AbortedError(signal!.reason));
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener('abort', abort);
        resolve();
      },
      Math.min(pauseMs, LONGEST_TIMER_MS),
    );
    signal?.addEventListener('abort', abort, { once: true });
  });
}
