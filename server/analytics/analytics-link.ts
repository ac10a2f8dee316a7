// A server's link to the analytics process. It starts the process when it is needed first, and again if it has ended.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { createInterface } from 'node:readline';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  type AnalyticsSetup,
  type EvaluationOrder,
  type EvaluationOutcome,
  type ExplanationOrder,
  isTooLongForSocket,
  type OrderRefusal,
  type PreviewOrder,
  REFUSED_STATUS,
  type ReportOrder,
  SETUP_VARIABLE,
  type SqlOrder,
  socketPath,
} from './analytics-orders.ts';
import type { AnsweredExplanation } from './segments/answer-segments.ts';

const START_TIMEOUT_MS = 10_000;
const TRY_AGAIN_MS = 20;
/** After a failed start, all queries fail for this time with its reason, so that the log does not grow with every query. */
const START_AGAIN_AFTER_MS = 5000;
/** An organisation can end the process several times before its analytics is paused. */
const MOST_SENDS = 5;
/** A process that does not respond at all for this time hangs. It may take seconds to close a large replica. */
const HANGS_AFTER_MS = 30_000;
/** Queries wait for one of libuv's threads. There must be enough for all queries and for the replication. */
const POOL_THREADS = 24;

export type OrderResult =
  | { readonly kind: 'result'; readonly body: IncomingMessage }
  | { readonly kind: 'refused'; readonly refusal: OrderRefusal };

interface EndedProcess {
  /** Null if a signal ended the process. */
  readonly code: number | null;
  readonly lastLine: string;
}

interface FailedStart {
  readonly error: Error;
  readonly untilMs: number;
}

/** The errors of a connection to a process that has ended, or whose folder was deleted. */
const goneCodes: ReadonlySet<unknown> = new Set(['ECONNRESET', 'ECONNREFUSED', 'ENOENT', 'EPIPE']);

/** The process did not respond in time. */
class Unresponsive extends Error {}

export class AnalyticsLink {
  readonly #setup: AnalyticsSetup;
  readonly #log: (message: string) => void;
  readonly #hangsAfterMs: number;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #closing = new AbortController();
  /** Settles when the process that was started has ended. */
  #started: Promise<EndedProcess> | null = null;
  #failedStart: FailedStart | null = null;
  /** The process, if this server has started it. */
  #child: ChildProcess | null = null;
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

  /** Evaluates segments, and stores the results. */
  evaluate(
    order: EvaluationOrder,
    signal: AbortSignal = this.#closing.signal,
  ): Promise<EvaluationOutcome | OrderRefusal> {
    return this.#ask('/evaluation', order, signal);
  }

  async #ask<Answer>(path: string, order: object, signal: AbortSignal): Promise<Answer | OrderRefusal> {
    const answer = await this.#order(path, order, signal);
    if (answer.kind === 'refused') return answer.refusal;
    try {
      return (await json(answer.body)) as Answer;
    } catch (error) {
      return this.#refusalOf(error);
    }
  }

  async #order(path: string, order: object, signal: AbortSignal): Promise<OrderResult> {
    try {
      const body = await this.#sendAgainIfGone(path, JSON.stringify(order), signal);
      if (body.statusCode !== REFUSED_STATUS) return { kind: 'result', body };
      const refusal = (await json(body)) as OrderRefusal;
      return { kind: 'refused', refusal: { ...refusal, message: this.#withoutPaths(refusal.message) } };
    } catch (error) {
      return { kind: 'refused', refusal: this.#refusalOf(error) };
    }
  }

  #refusalOf(error: unknown): OrderRefusal {
    const { code, message: reason } = error as NodeJS.ErrnoException;
    const message = goneCodes.has(code)
      ? 'The process that runs queries ended unexpectedly; it may have needed too much memory. It is started again.'
      : `Analytics is not available: ${this.#withoutPaths(reason)}`;
    return { kind: 'unavailable', message, position: null };
  }

  /** The query of another organisation may have ended the process, so the order is sent again. */
  async #sendAgainIfGone(path: string, body: string, signal: AbortSignal): Promise<IncomingMessage> {
    for (let sends = 1; ; sends++) {
      const staying = await this.#reach();
      const watching = setInterval(() => void this.#endIfItHangs(), this.#hangsAfterMs).unref();
      try {
        return await this.#send(path, body, signal);
      } catch (error) {
        const isGone = goneCodes.has((error as NodeJS.ErrnoException).code);
        if (sends === MOST_SENDS || signal.aborted || !isGone) throw error;
        this.#leave(staying);
      } finally {
        clearInterval(watching);
      }
    }
  }

  /** Ends the process if it does not respond. All queries are then sent again, to the next one. */
  async #endIfItHangs(): Promise<void> {
    try {
      (await this.#send('/alive', '', this.#closing.signal, this.#hangsAfterMs)).resume();
    } catch (error) {
      if (!(error instanceof Unresponsive)) return;
      this.#log(`the analytics process has not responded for ${this.#hangsAfterMs / 1000} s`);
      // If another server has started it, that one ends it.
      this.#child?.kill('SIGKILL');
      this.#agent.destroy();
    }
  }

  /** Organisations see the message, but the paths of this machine are not for them. */
  #withoutPaths(message: string): string {
    const { folder, database } = this.#setup;
    return message.replaceAll(folder, 'HEADGATE_ANALYTICS_DIR').replaceAll(database, 'HEADGATE_DATABASE');
  }

  /** Lets the process end, unless other servers use it. */
  close(): void {
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

  async #stay(): Promise<IncomingMessage> {
    const deadlineMs = performance.now() + START_TIMEOUT_MS;
    let own: Promise<EndedProcess> | null = null;
    for (;;) {
      try {
        const staying = await this.#send('/stay', '', this.#closing.signal, deadlineMs - performance.now());
        const leave = (): void => this.#leave(staying);
        staying.on('close', leave).on('error', leave).resume();
        staying.socket.unref();
        this.#staying = staying;
        return staying;
      } catch (error) {
        if (this.#closing.signal.aborted) throw error;
        const nowMs = performance.now();
        if (nowMs > deadlineMs) throw new Error(`it did not start within ${START_TIMEOUT_MS / 1000} s`);
        if (own === null && this.#started === null) {
          if (nowMs < (this.#failedStart?.untilMs ?? 0)) throw this.#failedStart!.error;
          own = this.#start().finally(() => {
            this.#started = null;
          });
          this.#started = own;
        }
        // An earlier process, which has served queries, may end just now. That is not a failed start.
        const ended = await Promise.race([own ?? this.#started!, sleep(TRY_AGAIN_MS)]);
        // The code is 0 if another process runs already.
        if (own !== null && ended !== undefined && ended.code !== 0) throw this.#failStart(ended);
        if (ended !== undefined) own = null;
        await sleep(TRY_AGAIN_MS);
      }
    }
  }

  #failStart({ lastLine }: EndedProcess): Error {
    const error = new Error(lastLine || 'it ended when it was started');
    this.#failedStart = { error, untilMs: performance.now() + START_AGAIN_AFTER_MS };
    return error;
  }

  /** Starts the process. Resolves when it has ended, which it does at once if another one runs. */
  async #start(): Promise<EndedProcess> {
    mkdirSync(this.#setup.folder, { recursive: true, mode: 0o700 });
    const program = fileURLToPath(new URL('./analytics-process.ts', import.meta.url));
    const env = {
      ...process.env,
      [SETUP_VARIABLE]: JSON.stringify(this.#setup),
      UV_THREADPOOL_SIZE: String(POOL_THREADS),
    };
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program], {
      env,
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.unref();
    this.#child = child;
    let lastLine = '';
    createInterface(child.stderr!).on('line', (line) => {
      lastLine = line;
      this.#log(line);
    });
    (child.stderr as unknown as { unref(): void }).unref();
    return new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code, signal) => {
        if (this.#child === child) this.#child = null;
        if (code !== 0)
          this.#log(`the analytics process ended unexpectedly (${signal ?? `exit code ${code}`})`);
        resolve({ code, lastLine });
      });
    });
  }

  /** Rejects if there is no response within the time. A response that has begun can take longer. */
  #send(path: string, body: string, signal: AbortSignal, withinMs?: number): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const options = {
      socketPath: socketPath(this.#setup),
      path,
      method: 'POST',
      agent: this.#agent,
      signal,
    };
    const sent = request(options, resolve);
    sent.on('error', reject);
    sent.end(body);
    if (withinMs === undefined) return promise;
    const timer = setTimeout(() => sent.destroy(new Unresponsive('it does not respond')), withinMs);
    return promise.finally(() => clearTimeout(timer));
  }
}
