// How often and with which pauses a try is repeated.

import { countOrEndlessFrom, durationFrom, shown } from './option-checks.ts';

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

/** RetryOptions with all that they leave open. */
export interface RetryRules {
  readonly attempts: number;
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
  readonly patienceMs: number;
}

const DEFAULT_FIRST_PAUSE_MS = 250;
const DEFAULT_LONGEST_PAUSE_MS = 10_000;
const DEFAULT_PATIENCE_MS = 120_000;
/** Far more than any pause needs; without an end, a first pause of 0 would at last be multiplied by Infinity. */
const MOST_DOUBLINGS = 50;

/** Throws a TypeError for what cannot be meant. */
export function retryRules(given: RetryOptions | undefined): RetryRules {
  const options = given ?? {};
  if (typeof options !== 'object') throw new TypeError(`retry must be an object, not ${shown(options)}`);
  const { attempts, firstPauseMs, longestPauseMs, patienceMs } = options;
  const endless = { leastMs: 0, mayBeEndless: true };
  return {
    attempts: countOrEndlessFrom('retry.attempts', attempts),
    firstPauseMs: durationFrom('retry.firstPauseMs', firstPauseMs, DEFAULT_FIRST_PAUSE_MS, {
      leastMs: 0,
      mayBeEndless: false,
    }),
    longestPauseMs: durationFrom('retry.longestPauseMs', longestPauseMs, DEFAULT_LONGEST_PAUSE_MS, endless),
    patienceMs: durationFrom('retry.patienceMs', patienceMs, DEFAULT_PATIENCE_MS, endless),
  };
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
  readonly #rules: RetryRules;
  #failures = 0;
  #firstFailureMs = 0;

  constructor(rules: RetryRules) {
    this.#rules = rules;
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
    const { attempts, firstPauseMs, longestPauseMs, patienceMs } = this.#rules;
    const leftMs = patienceMs - this.elapsedMs;
    if (this.#failures >= attempts || leftMs <= 0) return null;
    const doublings = Math.min(this.#failures - 1, MOST_DOUBLINGS);
    const growingMs = Math.min(longestPauseMs, firstPauseMs * 2 ** doublings);
    // Anything up to the whole of it, so that many that failed together do not come back together.
    const jitterMs = Math.random() * (retryAfterMs === null ? growingMs : firstPauseMs);
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
