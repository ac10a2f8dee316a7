// Decides how often failed requests are retried, and how long to pause before each retry.

import { countFrom, durationFrom, shown } from './option-checks.ts';

export interface RetryOptions {
  /** The total number of attempts; 1 means no retry. Default: as many as fit into patienceMs. */
  attempts?: number | undefined;
  /** The maximum pause after the first failure. The maximum doubles with every further failure. Default: 250 ms. */
  firstPauseMs?: number | undefined;
  /** The longest pause, unless the server requests a longer pause with Retry-After. Default: 10 s. */
  longestPauseMs?: number | undefined;
  /** How long to retry after the first failure. Default: 2 minutes, which is enough for a server to restart. */
  patienceMs?: number | undefined;
}

/** RetryOptions with all defaults applied. */
export type RetryRules = Readonly<Record<keyof RetryOptions, number>>;

const DEFAULT_FIRST_PAUSE_MS = 250;
const DEFAULT_LONGEST_PAUSE_MS = 10_000;
const DEFAULT_PATIENCE_MS = 120_000;
/** Limits the exponent: 2 to the power of 1024 is Infinity, and a first pause of 0 times Infinity would be NaN. */
const MOST_DOUBLINGS = 50;

/** Returns the options with all defaults. Throws a TypeError for an invalid option. */
export function retryRules(given: RetryOptions | undefined): RetryRules {
  const options = given ?? {};
  if (typeof options !== 'object') throw new TypeError(`retry must be an object, not ${shown(options)}`);
  const { attempts, firstPauseMs, longestPauseMs, patienceMs } = options;
  return {
    attempts: (attempts ?? Infinity) === Infinity ? Infinity : countFrom('retry.attempts', attempts, 1),
    firstPauseMs: durationFrom(
      'retry.firstPauseMs',
      firstPauseMs,
      DEFAULT_FIRST_PAUSE_MS,
      0,
      Number.MAX_VALUE,
    ),
    longestPauseMs: durationFrom('retry.longestPauseMs', longestPauseMs, DEFAULT_LONGEST_PAUSE_MS),
    patienceMs: durationFrom('retry.patienceMs', patienceMs, DEFAULT_PATIENCE_MS),
  };
}

/** Why a request is retried, and after which pause. */
export interface RetryNotice {
  /** The number of the failed attempt, starting at 1. */
  readonly attempt: number;
  readonly pauseMs: number;
  readonly reason: string;
}

/** The retry budget of one call, or of several calls that share it. */
export class Patience {
  readonly #rules: RetryRules;
  failures = 0;
  #firstFailureMs = 0;

  constructor(rules: RetryRules) {
    this.#rules = rules;
  }

  /** The time since the first failure. */
  get elapsedMs(): number {
    return this.failures === 0 ? 0 : performance.now() - this.#firstFailureMs;
  }

  /** Counts a failure. Returns the pause before the next attempt, or null if there are no attempts or no time left. */
  pauseMs(retryAfterMs: number | null): number | null {
    if (this.failures === 0) this.#firstFailureMs = performance.now();
    this.failures++;
    const { attempts, firstPauseMs, longestPauseMs, patienceMs } = this.#rules;
    const leftMs = patienceMs - this.elapsedMs;
    if (this.failures >= attempts || leftMs <= 0) return null;
    const doublings = Math.min(this.failures - 1, MOST_DOUBLINGS);
    const growingMs = Math.min(longestPauseMs, firstPauseMs * 2 ** doublings);
    // Full jitter, so that clients that failed at the same time do not retry at the same time.
    const jitterMs = Math.random() * (retryAfterMs === null ? growingMs : firstPauseMs);
    return Math.min((retryAfterMs ?? 0) + jitterMs, leftMs);
  }
}

const httpDate = /^[A-Z][a-z]+, /;

/** Returns the delay of a Retry-After header, which contains seconds or a date. Returns null for any other header. */
export function retryAfterMs(header: string | null, nowMs: number): number | null {
  if (header === null) return null;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header) * 1000;
  const atMs = httpDate.test(header) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - nowMs);
}
