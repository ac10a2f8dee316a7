// How often and with which pauses a try is repeated.

export interface RetryOptions {
  /** Tries in all. Unless given, as many as fit into patienceMs; 1 never repeats. */
  attempts?: number | undefined;
  /** The longest pause after the first failure; it doubles with every further one. 250 ms. */
  firstPauseMs?: number | undefined;
  /** No pause is longer, unless the server asks for it with Retry-After. 10 s. */
  longestPauseMs?: number | undefined;
  /** How long tries are repeated after the first failure: 2 minutes, enough for a server to be started again. */
  patienceMs?: number | undefined;
}

/** Why a try is repeated, and after which pause. */
export interface RetryNotice {
  /** The number of the try that failed, from 1. */
  readonly attempt: number;
  readonly pauseMs: number;
  readonly reason: string;
}

/** The patience with one request. */
export class Patience {
  readonly #attempts: number;
  readonly #firstPauseMs: number;
  readonly #longestPauseMs: number;
  readonly #patienceMs: number;
  #failures = 0;
  #firstFailureMs = 0;

  constructor(options: RetryOptions) {
    this.#attempts = options.attempts ?? Infinity;
    this.#firstPauseMs = options.firstPauseMs ?? 250;
    this.#longestPauseMs = options.longestPauseMs ?? 10_000;
    this.#patienceMs = options.patienceMs ?? 120_000;
  }

  get failures(): number {
    return this.#failures;
  }

  /** Since the first failure. */
  get elapsedMs(): number {
    return this.#failures === 0 ? 0 : performance.now() - this.#firstFailureMs;
  }

  /** The pause after a failure, or null where patience is at its end. */
  pauseMs(retryAfterMs: number | null): number | null {
    if (this.#failures === 0) this.#firstFailureMs = performance.now();
    this.#failures++;
    const leftMs = this.#patienceMs - this.elapsedMs;
    if (this.#failures >= this.#attempts || leftMs <= 0) return null;
    const growing = Math.min(this.#longestPauseMs, this.#firstPauseMs * 2 ** (this.#failures - 1));
    // Anything up to the whole of it, so that many that failed together do not come back together.
    const jitterMs = Math.random() * (retryAfterMs === null ? growing : this.#firstPauseMs);
    return Math.min((retryAfterMs ?? 0) + jitterMs, leftMs);
  }
}

const httpDate = /^[A-Z][a-z]+, /;

/** What a Retry-After header asks for: seconds, or a date. Null where it says neither. */
export function retryAfterMs(header: string | null, nowMs: number): number | null {
  if (header === null) return null;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header) * 1000;
  const atMs = httpDate.test(header) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - nowMs);
}
