// Limits the time that DuckDB spends on a query, and stops a query that is no longer wanted.

import type { DuckDBConnection } from '@duckdb/node-api';
import { QueryFailed, type QueryFailure, readQueryError } from './query-errors.ts';

/** After this time, a query that was told to stop is stuck. A sort on disk takes seconds while others are busy. */
const STOP_WITHIN_MS = 10_000;
/** DuckDB forgets an interrupt that comes between planning and running, so it is repeated. */
const INTERRUPT_EVERY_MS = 50;

interface ClockLimits {
  readonly withinMs: number;
  readonly signal?: AbortSignal;
  readonly stopWithinMs?: number;
}

/** Limits the time that DuckDB spends on a query, and stops it if the signal says so. */
export class QueryClock {
  readonly #connection: DuckDBConnection;
  readonly #sql: string;
  readonly #limits: ClockLimits;
  #leftMs: number;
  #isStuck = false;

  constructor(connection: DuckDBConnection, sql: string, limits: ClockLimits) {
    this.#connection = connection;
    this.#sql = sql;
    this.#limits = limits;
    this.#leftMs = limits.withinMs;
  }

  /** Whether DuckDB did not stop the query when it was told to. */
  get isStuck(): boolean {
    return this.#isStuck;
  }

  /** Waits for a call of DuckDB. Throws a QueryFailed if the call fails or has to be stopped. */
  async wait<Value>(call: () => Promise<Value>): Promise<Value> {
    const { signal } = this.#limits;
    if (signal?.aborted) throw new QueryFailed(this.#stopped('cancelled', false));
    if (this.#leftMs <= 0) throw new QueryFailed(this.#stopped('too_slow', false));

    let reason: 'too_slow' | 'cancelled' | null = null;
    let repeat: NodeJS.Timeout | undefined;
    let giveUp: NodeJS.Timeout | undefined;
    let beStuck: NodeJS.Immediate | undefined;
    const { promise: stuck, reject } = Promise.withResolvers<never>();
    const stop = (why: 'too_slow' | 'cancelled') => {
      if (reason !== null) return;
      reason = why;
      this.#connection.interrupt();
      repeat = setInterval(() => this.#connection.interrupt(), INTERRUPT_EVERY_MS);
      giveUp = setTimeout(() => {
        // If the process was busy, the result of the call may be there, but is read only after the timers.
        beStuck = setImmediate(() => {
          this.#isStuck = true;
          reject(new QueryFailed(this.#stopped(why, true)));
        });
      }, this.#limits.stopWithinMs ?? STOP_WITHIN_MS);
    };
    const cancel = () => stop('cancelled');
    const timer = setTimeout(() => stop('too_slow'), this.#leftMs);
    signal?.addEventListener('abort', cancel);
    const startedMs = performance.now();
    try {
      const value = await Promise.race([call(), stuck]);
      if (reason !== null) throw new QueryFailed(this.#stopped(reason, false));
      return value;
    } catch (error) {
      if (error instanceof QueryFailed) throw error;
      throw new QueryFailed(reason === null ? this.#failed(error) : this.#stopped(reason, false));
    } finally {
      this.#leftMs -= performance.now() - startedMs;
      clearTimeout(timer);
      clearTimeout(giveUp);
      clearImmediate(beStuck);
      clearInterval(repeat);
      signal?.removeEventListener('abort', cancel);
    }
  }

  #stopped(kind: 'too_slow' | 'cancelled', isStuck: boolean): QueryFailure {
    const { withinMs } = this.#limits;
    const message =
      kind === 'cancelled'
        ? 'The query was cancelled.'
        : `The query took longer than ${withinMs / 1000} s. Read fewer rows, or aggregate earlier.`;
    return { kind, message, isStuck };
  }

  #failed(error: unknown): QueryFailure {
    const { type, message, position } = readQueryError(error, this.#sql);
    if (type === 'Out of Memory') {
      return {
        kind: 'too_large',
        message:
          'The query needs more memory than it may use. Read fewer rows or columns, or aggregate earlier.',
      };
    }
    // A query has no files of its own, and an internal error of DuckDB makes the database unusable.
    if (['', 'FATAL', 'INTERNAL', 'IO'].includes(type)) throw error;
    return { kind: 'invalid', message, position };
  }
}
