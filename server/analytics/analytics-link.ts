// A server's link to the analytics process. It starts the process when it is needed first, and again if it has ended.

import { Agent, type IncomingMessage, request } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type AnalyticsSetup,
  type EvaluationOrder,
  type EvaluationOutcome,
  type ExplanationOrder,
  isTooLongForSocket,
  ORGANISATION_HEADER,
  type Order,
  type OrderRefusal,
  type PreviewOrder,
  REFUSED_STATUS,
  type ReportOrder,
  type SqlOrder,
  socketPath,
} from './analytics-orders.ts';
import type { AnsweredExplanation } from './segments/answer-segments.ts';
import { startAnalytics } from './start-analytics.ts';

const START_TIMEOUT_MS = 10_000;
const TRY_AGAIN_MS = 20;
/** After a failed start, all queries fail for this time with its reason, so that the log does not grow with every query. */
const START_AGAIN_AFTER_MS = 5000;
/** How often an order is sent if the process ends again and again, for example because its folder is deleted. */
const MOST_SENDS = 3;
/** A process that does not respond at all for this time hangs. */
const HANGS_AFTER_MS = 30_000;

export type OrderResult =
  | { readonly kind: 'result'; readonly body: IncomingMessage }
  | { readonly kind: 'refused'; readonly refusal: OrderRefusal };

interface StartedProcess {
  /** Whether this server has connected to the process. If not, its end is a failed start. */
  hasServed: boolean;
  readonly ended: Promise<void>;
  kill(): void;
}

interface FailedStart {
  readonly reason: string;
  readonly untilMs: number;
}

/** The errors of a connection to a process that has ended, or whose folder was deleted. */
const goneCodes: ReadonlySet<unknown> = new Set(['ECONNRESET', 'ECONNREFUSED', 'ENOENT', 'EPIPE']);

const closed: OrderRefusal = {
  kind: 'unavailable',
  message: 'The service is shutting down, so the query was ended; try again shortly.',
  position: null,
};

/** The process did not respond in time. */
class Unresponsive extends Error {}

export class AnalyticsLink {
  readonly #setup: AnalyticsSetup;
  readonly #log: (message: string) => void;
  readonly #hangsAfterMs: number;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #endingEvaluations = new AbortController();
  readonly #closing = new AbortController();
  /** The process, if this server has started it. */
  #started: StartedProcess | null = null;
  #failedStart: FailedStart | null = null;
  #reaching: Promise<IncomingMessage> | null = null;
  /** The connection that keeps the process alive. */
  #staying: IncomingMessage | null = null;

  /** `log` gets the lines that the process prints. */
  constructor(setup: AnalyticsSetup, log: (message: string) => void, hangsAfterMs = HANGS_AFTER_MS) {
    this.#setup = setup;
    this.#log = log;
    this.#hangsAfterMs = hangsAfterMs;
  }

  /** Runs a query. The signal ends it, for example because the client has left. */
  sql(order: SqlOrder, signal: AbortSignal): Promise<OrderResult> {
    return this.#order('/sql', order, signal);
  }

  /** Computes a recommendation report, as JSON. */
  report(order: ReportOrder, signal: AbortSignal): Promise<OrderResult> {
    return this.#order('/report', order, signal);
  }

  /** Counts the members of a condition, as JSON. */
  preview(order: PreviewOrder, signal: AbortSignal): Promise<OrderResult> {
    return this.#order('/preview', order, signal);
  }

  /** Explains why a segment contains a customer or not. */
  explain(order: ExplanationOrder, signal: AbortSignal): Promise<AnsweredExplanation | OrderRefusal> {
    return this.#ask('/explanation', order, signal);
  }

  /** Evaluates a segment, and stores the result. */
  evaluate(
    order: EvaluationOrder,
    signal: AbortSignal = this.#endingEvaluations.signal,
  ): Promise<EvaluationOutcome | OrderRefusal> {
    return this.#ask('/evaluation', order, signal);
  }

  async #ask<Answer>(path: string, order: Order, signal: AbortSignal): Promise<Answer | OrderRefusal> {
    const answer = await this.#order(path, order, signal);
    if (answer.kind === 'refused') return answer.refusal;
    try {
      return (await json(answer.body)) as Answer;
    } catch (error) {
      return this.#refusalOf(error);
    }
  }

  async #order(path: string, order: Order, signal: AbortSignal): Promise<OrderResult> {
    try {
      const body = await this.#sendAgainIfGone(path, order, signal);
      if (body.statusCode !== REFUSED_STATUS) return { kind: 'result', body };
      const refusal = (await json(body)) as OrderRefusal;
      return { kind: 'refused', refusal: { ...refusal, message: this.#withoutPaths(refusal.message) } };
    } catch (error) {
      return { kind: 'refused', refusal: this.#refusalOf(error) };
    }
  }

  #refusalOf(error: unknown): OrderRefusal {
    if (this.#closing.signal.aborted) return closed;
    const { code, message: reason } = error as NodeJS.ErrnoException;
    const message = goneCodes.has(code)
      ? 'The process that runs queries ended unexpectedly. It is started again.'
      : `Analytics is not available: ${this.#withoutPaths(reason)}`;
    return { kind: 'unavailable', message, position: null };
  }

  /** If the process has ended, for example because its folder was deleted, the order is sent to the next one. */
  async #sendAgainIfGone(path: string, order: Order, signal: AbortSignal): Promise<IncomingMessage> {
    for (let sends = 1; ; sends++) {
      signal.throwIfAborted();
      const staying = await this.#reach();
      const watching = setInterval(() => void this.#endIfItHangs(), this.#hangsAfterMs).unref();
      try {
        return await this.#send(path, order, signal);
      } catch (error) {
        const isGone = goneCodes.has((error as NodeJS.ErrnoException).code);
        if (sends === MOST_SENDS || signal.aborted || this.#closing.signal.aborted || !isGone) throw error;
        this.#leave(staying);
      } finally {
        clearInterval(watching);
      }
    }
  }

  /** Ends the process if it does not respond. All queries are then sent again, to the next one. */
  async #endIfItHangs(): Promise<void> {
    try {
      (await this.#send('/alive', null, this.#closing.signal, this.#hangsAfterMs)).resume();
    } catch (error) {
      if (!(error instanceof Unresponsive)) return;
      this.#log(`the analytics process has not responded for ${this.#hangsAfterMs / 1000} s`);
      // If another server has started it, that one ends it.
      this.#started?.kill();
      this.#agent.destroy();
    }
  }

  /** Organisations see the message, but the paths of this machine are not for them. */
  #withoutPaths(message: string): string {
    const { folder, database } = this.#setup;
    return message.replaceAll(folder, 'HEADGATE_ANALYTICS_DIR').replaceAll(database, 'HEADGATE_DATABASE');
  }

  get hasEndedEvaluations(): boolean {
    return this.#endingEvaluations.signal.aborted;
  }

  /** Ends evaluations, now and in future. They can be repeated, and would delay the end of the server. */
  endEvaluations(): void {
    this.#endingEvaluations.abort();
  }

  /** Ends all orders, now and in future, and lets the process end, unless other servers use it. */
  close(): void {
    this.endEvaluations();
    this.#closing.abort();
    this.#agent.destroy();
  }

  /** Resolves when the process runs and knows that this server needs it. */
  async #reach(): Promise<IncomingMessage> {
    if (isTooLongForSocket(this.#setup)) {
      throw new Error(
        `the path of ${this.#setup.folder} is too long; set HEADGATE_ANALYTICS_DIR to a shorter one`,
      );
    }
    if (this.#staying !== null) return this.#staying;
    this.#reaching ??= this.#stay().finally(() => {
      this.#reaching = null;
    });
    return this.#reaching;
  }

  #leave(staying: IncomingMessage): void {
    if (this.#staying === staying) this.#staying = null;
    staying.destroy();
  }

  /** Starts the process if none runs, and connects to it. */
  async #stay(): Promise<IncomingMessage> {
    const deadlineMs = performance.now() + START_TIMEOUT_MS;
    for (;;) {
      const staying = await this.#join(deadlineMs - performance.now());
      if (staying !== null) return staying;
      const nowMs = performance.now();
      if (nowMs > deadlineMs) throw new Error(`it did not start within ${START_TIMEOUT_MS / 1000} s`);
      if (nowMs < (this.#failedStart?.untilMs ?? 0)) throw new Error(this.#failedStart!.reason);
      this.#started ??= this.#start();
      await Promise.race([this.#started.ended, sleep(TRY_AGAIN_MS)]);
    }
  }

  /** Connects to the process. Resolves to null if none runs. */
  async #join(withinMs: number): Promise<IncomingMessage | null> {
    try {
      const staying = await this.#send('/stay', null, this.#closing.signal, withinMs);
      const leave = (): void => this.#leave(staying);
      staying.on('close', leave).on('error', leave);
      staying.socket.unref();
      this.#staying = staying;
      if (this.#started !== null) this.#started.hasServed = true;
      return staying;
    } catch (error) {
      if (this.#closing.signal.aborted) throw error;
      return null;
    }
  }

  #start(): StartedProcess {
    const { kill, ended: exited } = startAnalytics(this.#setup, this.#log);
    const ended = exited.then(({ code, lastLine }) => {
      if (this.#started === started) this.#started = null;
      // The code is 0 if another process runs already, or the folder was deleted while this one started.
      if (code === 0 || started.hasServed) return;
      this.#failedStart = { reason: lastLine, untilMs: performance.now() + START_AGAIN_AFTER_MS };
    });
    const started: StartedProcess = { hasServed: false, ended, kill };
    return started;
  }

  /** Rejects if there is no response within the time. A response that has begun can take longer. */
  #send(path: string, order: Order | null, signal: AbortSignal, withinMs?: number): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const options = {
      socketPath: socketPath(this.#setup),
      path,
      method: 'POST',
      headers: order === null ? {} : { [ORGANISATION_HEADER]: order.orgId },
      agent: this.#agent,
      signal,
    };
    const sent = request(options, resolve);
    sent.on('error', reject);
    sent.end(order === null ? '' : JSON.stringify(order));
    if (withinMs === undefined) return promise;
    const timer = setTimeout(() => sent.destroy(new Unresponsive('it does not respond')), withinMs);
    return promise.finally(() => clearTimeout(timer));
  }
}
