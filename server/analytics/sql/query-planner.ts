// Plans queries in a process of its own before they run. While DuckDB plans a query, it cannot be stopped, and its memory
// limit does not apply. A query of 1 KB can take minutes and gigabytes, so the process ends instead.

import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { OrderRefusal } from '../analytics-orders.ts';
import type { PlannedReply, PlanOrder } from './planning-process.ts';
import type { QueryParameter } from './run-query.ts';

/** Ordinary queries take milliseconds. DuckDB plans a query again when it runs, and cannot be stopped meanwhile. */
const PLAN_WITHIN_MS = 1000;

const tooComplex: OrderRefusal = {
  kind: 'too_large',
  message:
    'The query is too complex: DuckDB needs more than 1 s or 128 MiB to plan it, before it reads any data. Use fewer columns, smaller structs, arrays and constants, or less nesting.',
  position: null,
};

const notStarted: OrderRefusal = {
  kind: 'unavailable',
  message: 'The process that plans queries could not be started; try again later.',
  position: null,
};

interface Planning {
  readonly order: PlanOrder;
  readonly resolve: (refusal: OrderRefusal | null) => void;
  timer: NodeJS.Timeout | undefined;
}

export class QueryPlanner {
  #process: ChildProcess | null = null;
  #isReady = false;
  #lastId = 0;
  /** The queries that are being planned, the longest first. */
  readonly #plannings = new Map<number, Planning>();

  /** Starts the process, so that the first query does not wait for it. */
  constructor() {
    this.#start();
  }

  /** Resolves to null if the query can be planned, or has an error that DuckDB finds quickly. */
  plan(sql: string, parameters: readonly QueryParameter[]): Promise<OrderRefusal | null> {
    const { promise, resolve } = Promise.withResolvers<OrderRefusal | null>();
    const planning = { order: { id: ++this.#lastId, sql, parameters }, resolve, timer: undefined };
    this.#plannings.set(planning.order.id, planning);
    if (this.#process === null) this.#start();
    else this.#send(planning);
    return promise;
  }

  #start(): void {
    const program = fileURLToPath(new URL('./planning-process.ts', import.meta.url));
    const started = fork(program, { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
    this.#process = started;
    this.#isReady = false;
    started.on('message', (message: 'ready' | PlannedReply) => {
      if (message !== 'ready') {
        this.#settle(message.id, message.isPlanned ? null : tooComplex);
        return;
      }
      this.#isReady = true;
      for (const { order } of this.#plannings.values()) this.#limit(order.id);
    });
    started.once('error', () => this.#onEnd(null));
    started.once('exit', (code) => this.#onEnd(code));
    for (const planning of this.#plannings.values()) this.#send(planning);
  }

  #send({ order }: Planning): void {
    // If the process has just ended, the order is sent to the next one.
    this.#process!.send(order, () => {});
    if (this.#isReady) this.#limit(order.id);
  }

  #limit(id: number): void {
    this.#plannings.get(id)!.timer = setTimeout(() => this.#process?.kill('SIGKILL'), PLAN_WITHIN_MS);
  }

  #settle(id: number, refusal: OrderRefusal | null): void {
    const planning = this.#plannings.get(id);
    clearTimeout(planning?.timer);
    this.#plannings.delete(id);
    planning?.resolve(refusal);
  }

  /** The code is 0 if the process ended in order to free its memory. */
  #onEnd(code: number | null): void {
    if (this.#process === null) return;
    this.#process = null;
    for (const { timer } of this.#plannings.values()) clearTimeout(timer);
    const ids = [...this.#plannings.keys()];
    if (!this.#isReady) for (const id of ids) this.#settle(id, notStarted);
    // The query that has been planned the longest is the one that took too long or too much memory.
    else if (code !== 0 && ids.length > 0) this.#settle(ids[0]!, tooComplex);
    if (this.#plannings.size > 0) this.#start();
  }
}
