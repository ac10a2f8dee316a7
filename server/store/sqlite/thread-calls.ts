// Calls operations on the threads of a SQLite store. All calls of one event-loop turn travel in one message, and so do
// their results: at ten thousand calls a second, one message per call would cost more than the work.

import type { MessagePort } from 'node:worker_threads';
import { PendingCalls } from '../../workers/pending-calls.ts';
import type { OrganisationNumber } from '../rows.ts';
import { StoreBusy, StoreUnavailable, StoreUnusable } from '../store.ts';

export type ThreadCall = readonly [
  id: number,
  operation: string,
  args: readonly unknown[],
  /** The organisation that makes the call; null for calls of no organisation. */
  organisation: OrganisationNumber | null,
  rows: number,
];

/** The errors that callers handle, from the most to the least specific. Any other error is a bug. */
const storeErrors = { busy: StoreBusy, unavailable: StoreUnavailable, unusable: StoreUnusable } as const;
type StoreErrorKind = keyof typeof storeErrors;

export interface CallFailure {
  readonly kind: StoreErrorKind | 'bug';
  readonly message: string;
  readonly stack: string;
}

export type CallResult = { readonly kind: 'done'; readonly value: unknown } | CallFailure;

/**
 * A result in the form in which it crosses threads. A success is sent as the bare value, because an object around the
 * value would make it cross more slowly.
 */
export type SentResult =
  | readonly [id: number, value: unknown]
  | readonly [id: number, value: null, failure: CallFailure];

export function sentResultOf(id: number, outcome: CallResult): SentResult {
  return outcome.kind === 'done' ? [id, outcome.value] : [id, null, outcome];
}

export function done(value: unknown): CallResult {
  return { kind: 'done', value };
}

export function failed(error: Error): CallFailure {
  const kinds = Object.keys(storeErrors) as StoreErrorKind[];
  const kind = kinds.find((kind) => error instanceof storeErrors[kind]) ?? 'bug';
  return { kind, message: error.message, stack: error.stack ?? '' };
}

/** Returns the error of a failure, for the thread that made the call. */
export function errorOf({ kind, message, stack }: CallFailure): Error {
  if (kind !== 'bug') return new storeErrors[kind](message);
  const error = new Error(message);
  error.stack = stack;
  return error;
}

/**
 * The most calls of one organisation, or of no organisation, that may wait at once. The requests in flight of an
 * organisation cause fewer calls than this, so the limit only bounds memory.
 */
const MOST_CALLS_WAITING = 20_000;
const MOST_BYTES_WAITING = 256 * 1024 * 1024;
const SMALL_CALL_BYTES = 500;
/** A call counts as at least one row per this many bytes, because long rows take as long as several short ones. */
const BYTES_PER_ROW = 1024;

// biome-ignore lint/suspicious/noExplicitAny: the constraint has to admit operations of any signature.
type Operations = { readonly [name: string]: (...args: any[]) => unknown };

/** The waiting calls of one organisation, or of no organisation. */
interface Account {
  calls: number;
  bytes: number;
}

export interface CallOptions {
  /** The organisation that makes the call; null for a call of no organisation. */
  readonly organisation: OrganisationNumber | null;
  /** The approximate number of rows that the call writes, or reads in one step. The default is 1. */
  readonly rows?: number;
  /** The approximate size of the arguments. Needed only if the arguments may be large. */
  readonly bytes?: number;
  /** A buffer in the arguments that is transferred to the thread. */
  readonly handedOver?: ArrayBuffer;
}

/** A caller's connection to one thread. If the thread ends, the link is connected to the thread that replaces it. */
export interface Link<O extends Operations> {
  call<N extends keyof O & string>(
    operation: N,
    args: Parameters<O[N]>,
    options: CallOptions,
  ): Promise<ReturnType<O[N]>>;
  connect(port: MessagePort): void;
  /**
   * Rejects all waiting calls, and all new calls until the link is connected again. `reason` becomes their error
   * message.
   */
  lose(reason: string): void;
  /** Returns why no call can be made, or null if the thread can be reached. */
  absence(): string | null;
  /** Rejects new calls from now on. Resolves when all earlier calls have finished. */
  close(): Promise<void>;
}

export function createLink<O extends Operations>(threadName: string): Link<O> {
  let port: MessagePort | null = null;
  let absence = `the store's ${threadName} thread has not been started`;
  let isClosed = false;
  let unsent: ThreadCall[] = [];
  let unsentBuffers: ArrayBuffer[] = [];
  const accounts = new Map<OrganisationNumber | null, Account>();
  const pending = new PendingCalls<unknown, { organisation: OrganisationNumber | null; bytes: number }>(
    ({ organisation, bytes }) => {
      const account = accounts.get(organisation)!;
      account.calls--;
      account.bytes -= bytes;
      if (account.calls === 0) accounts.delete(organisation);
      // Lets the process end if the store is idle. While a call waits for its result, the port keeps the process alive.
      if (pending.size === 0) port?.unref();
    },
  );

  const flush = (): void => {
    const calls = unsent;
    const buffers = unsentBuffers;
    unsent = [];
    unsentBuffers = [];
    if (calls.length > 0) port?.postMessage(calls, buffers);
  };

  const receive = (results: readonly SentResult[]): void => {
    for (const [id, value, failure] of results) {
      if (failure === undefined) pending.resolve(id, value);
      else pending.reject(id, errorOf(failure));
    }
  };

  const lose = (reason: string): void => {
    absence = reason;
    port?.close();
    port = null;
    unsent = [];
    unsentBuffers = [];
    pending.rejectAll(new StoreUnavailable(reason));
  };

  const whyAbsent = (): string | null => (isClosed ? 'the store is closed' : port === null ? absence : null);

  return {
    call(operation, args, { organisation, rows = 1, bytes = SMALL_CALL_BYTES, handedOver }) {
      const absent = whyAbsent();
      if (port === null || absent !== null) return Promise.reject(new StoreUnavailable(absent ?? absence));
      const account = accounts.get(organisation) ?? { calls: 0, bytes: 0 };
      if (account.calls >= MOST_CALLS_WAITING || account.bytes + bytes > MOST_BYTES_WAITING) {
        return Promise.reject(
          new StoreBusy(
            `too much is waiting for the store (${account.calls} calls, ${account.bytes} bytes): try again later`,
          ),
        );
      }
      if (pending.size === 0) port.ref();
      account.calls++;
      account.bytes += bytes;
      accounts.set(organisation, account);
      const { id, promise } = pending.begin({ organisation, bytes });
      if (handedOver !== undefined) unsentBuffers.push(handedOver);
      const countedRows = Math.max(rows, Math.ceil(bytes / BYTES_PER_ROW));
      if (unsent.push([id, operation, args, organisation, countedRows]) === 1) setImmediate(flush);
      return promise as Promise<never>;
    },

    connect(newPort) {
      port = newPort;
      port.on('message', receive);
      port.on('close', () => {
        if (port === newPort) lose(`the store's ${threadName} thread ended unexpectedly`);
      });
      port.unref();
    },

    lose,
    absence: whyAbsent,

    async close() {
      isClosed = true;
      await pending.drained();
      const last = port;
      port = null;
      last?.close();
    },
  };
}
