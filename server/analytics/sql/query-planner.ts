// Plans queries in processes of their own before they run. While DuckDB plans a query, it cannot be stopped, and its
// memory limit does not apply. A query of 1 KB can take minutes and gigabytes, so the process ends instead. There are two
// processes, each of which plans one query at a time, so that a query that takes long hardly delays those of others.

import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { OrderRefusal } from '../analytics-orders.ts';
import type { PlannedReply, PlanOrder } from './planning-process.ts';
import type { QueryParameter } from './run-query.ts';

const PROCESSES = 2;
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
}

interface PlanningProcess {
  readonly child: ChildProcess;
  isReady: boolean;
  planning: Planning | null;
  /** Why the query is refused; null once it is planned. */
  refusal: OrderRefusal | null;
  timer: NodeJS.Timeout | undefined;
}

export class QueryPlanner {
  readonly #processes = new Set<PlanningProcess>();
  /** The queries for which no process is free. */
  readonly #waiting: Planning[] = [];

  /** Starts the processes, so that the first query does not wait for one. */
  constructor() {
    this.#startMissing();
  }

  /** Resolves to null if the query can be planned, or has an error that DuckDB finds quickly. */
  plan(sql: string, parameters: readonly QueryParameter[]): Promise<OrderRefusal | null> {
    const { promise, resolve } = Promise.withResolvers<OrderRefusal | null>();
    this.#waiting.push({ order: { sql, parameters }, resolve });
    this.#startMissing();
    this.#sendWaiting();
    return promise;
  }

  /** Starts one process after the other, because queries wait for the first one. */
  #startMissing(): void {
    const isStarting = [...this.#processes].some(({ isReady }) => !isReady);
    if (!isStarting && this.#processes.size < PROCESSES) this.#start(null, null);
  }

  /**
   * Starts a process in the place of one that a query has ended. The response to that query waits until this one is
   * ready. Otherwise the organisation's next query could end the other process meanwhile.
   */
  #start(planning: Planning | null, refusal: OrderRefusal | null): void {
    const program = fileURLToPath(new URL('./planning-process.ts', import.meta.url));
    const child = fork(program, { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
    const started: PlanningProcess = { child, isReady: false, planning, refusal, timer: undefined };
    this.#processes.add(started);
    child.on('message', (message: 'ready' | PlannedReply) => {
      if (message === 'ready') {
        started.isReady = true;
        this.#settle(started);
      } else {
        clearTimeout(started.timer);
        if (message.isPlanned) started.refusal = null;
        // A process that is about to end gets no further query.
        if (!message.isLast && !child.killed) this.#settle(started);
      }
      this.#sendWaiting();
      this.#startMissing();
    });
    child.once('error', () => this.#onEnd(started));
    child.once('exit', () => this.#onEnd(started));
  }

  #sendWaiting(): void {
    for (const one of this.#processes) {
      if (!one.isReady || one.planning !== null) continue;
      const planning = this.#waiting.shift();
      if (planning === undefined) return;
      one.planning = planning;
      one.refusal = tooComplex;
      one.timer = setTimeout(() => one.child.kill('SIGKILL'), PLAN_WITHIN_MS);
      // If the process has just ended, its end is reported, too.
      one.child.send(planning.order, () => {});
    }
  }

  #settle(one: PlanningProcess): void {
    one.planning?.resolve(one.refusal);
    one.planning = null;
  }

  #onEnd(ended: PlanningProcess): void {
    if (!this.#processes.delete(ended)) return;
    clearTimeout(ended.timer);
    if (ended.isReady) {
      this.#start(ended.planning, ended.refusal);
      return;
    }
    this.#settle(ended);
    if (this.#processes.size > 0) return;
    for (const { resolve } of this.#waiting.splice(0)) resolve(notStarted);
  }
}
