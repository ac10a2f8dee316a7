// A replica process, as the analytics process sees it: starts it, passes orders on to it, and notices when it ends or
// hangs.

import { type ChildProcess, fork } from 'node:child_process';
import { createReadStream, rmSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { pipeline } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { settledWithin } from '../settled-within.ts';
import { AS_OF_HEADER } from './analytics-orders.ts';
import {
  EXPORTED_STATUS,
  exportPath,
  type FromReplicaProcess,
  ORDER_HEADER,
  REPLICA_SETUP_VARIABLE,
  type ReplicaProcessSetup,
  type ToReplicaProcess,
} from './replica-process-messages.ts';
import type { QueryPlanner } from './sql/query-planner.ts';

/** A process that does not take orders after this time is ended. */
const START_TIMEOUT_MS = 10_000;
/** Each of an organisation's queries and the replication wait for one of libuv's threads. */
const POOL_THREADS = 12;
/** How long a process stays for the ends of responses whose clients read slowly. */
const SENT_WITHIN_MS = 60_000;

let lastOrder = 0;

export interface StartedReplicaProcessOptions {
  readonly setup: ReplicaProcessSetup;
  readonly planner: QueryPlanner;
  /** DuckDB does not stop a query. */
  onStuck(process: StartedReplicaProcess): void;
  /** An order was refused, because the replica cannot be used. */
  onUnusable(orgId: string, reason: string): void;
}

/** Thrown if the process could not be started. The message is for clients. */
export class NotStarted extends Error {}

interface PassedOrder {
  /** Whether the process has received it. */
  hasBegun: boolean;
  end(): void;
}

export class StartedReplicaProcess {
  /** Resolves when the process takes orders. Rejects with a NotStarted. */
  readonly ready: Promise<void>;
  /** Resolves to why the process has ended, such as `SIGKILL`. */
  readonly ended: Promise<string>;
  #hasStarted = false;
  #hasEnded = false;
  #usedBytes = 0;
  #quietLooks = 0;
  readonly #options: StartedReplicaProcessOptions;
  readonly #child: ChildProcess;
  readonly #orders = new Map<number, PassedOrder>();
  readonly #responses = new Set<Promise<void>>();
  #notStarted = 'the process that runs queries ended when it was started';
  readonly #started = Promise.withResolvers<void>();
  #closing: PromiseWithResolvers<void> | null = null;
  #isReusable = true;

  constructor(options: StartedReplicaProcessOptions) {
    this.#options = options;
    const program = fileURLToPath(new URL('./replica-process.ts', import.meta.url));
    const env = {
      ...process.env,
      [REPLICA_SETUP_VARIABLE]: JSON.stringify(options.setup),
      UV_THREADPOOL_SIZE: String(POOL_THREADS),
    };
    this.#child = fork(program, { env, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    const tooSlow = setTimeout(() => {
      this.#notStarted = `it did not start within ${START_TIMEOUT_MS / 1000} s`;
      this.kill();
    }, START_TIMEOUT_MS);
    this.ready = this.#started.promise.finally(() => clearTimeout(tooSlow));
    this.ready.catch(() => {});
    this.#child.on('message', (message: FromReplicaProcess) => this.#read(message));
    const { promise: ended, resolve } = Promise.withResolvers<string>();
    this.ended = ended;
    const onEnd = (reason: string): void => {
      if (this.#hasEnded) return;
      this.#hasEnded = true;
      rmSync(options.setup.socket, { force: true });
      this.#started.reject(new NotStarted(this.#notStarted));
      for (const order of this.#orders.values()) order.end();
      resolve(reason);
    };
    this.#child.once('error', ({ message }) => onEnd(message));
    this.#child.once('exit', (code, signal) => onEnd(signal ?? `exit code ${code}`));
  }

  get hasStarted(): boolean {
    return this.#hasStarted;
  }

  /** Whether the process can open the replica of another organisation after it has closed the last one. */
  get isReusable(): boolean {
    return this.#isReusable && !this.#hasEnded;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** How much memory the process uses. */
  get usedBytes(): number {
    return this.#hasEnded ? 0 : this.#usedBytes;
  }

  /** Returns how often this was called since the process last sent something. */
  countQuietLook(): number {
    return this.#quietLooks++;
  }

  /**
   * Passes an order on, and its response back. Resolves when the replica is no longer used for the order, although the end
   * of the response may still be sent: to false if the process ended before it responded.
   */
  async pass(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
    // The client has left while it waited.
    if (response.destroyed) return true;
    const number = ++lastOrder;
    const { socket, options } = this.#options.setup;
    const exported = exportPath(options.exportFolder, number);
    const removeExport = (): void => rmSync(exported, { force: true });
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const order: PassedOrder = { hasBegun: false, end: resolve };
    this.#orders.set(number, order);
    const responded = Promise.withResolvers<boolean>();
    const passed = httpRequest({
      socketPath: socket,
      path: request.url,
      method: 'POST',
      headers: { [ORDER_HEADER]: number },
      agent: false,
    });
    const closed = Promise.withResolvers<void>();
    this.#responses.add(closed.promise);
    passed.on('response', (answer) => {
      responded.resolve(true);
      // The client has left.
      if (response.destroyed) return removeExport();
      const asOf = answer.headers[AS_OF_HEADER.toLowerCase()];
      const isExported = answer.statusCode === EXPORTED_STATUS;
      const status = isExported ? 200 : answer.statusCode!;
      response.writeHead(status, asOf === undefined ? {} : { [AS_OF_HEADER]: asOf });
      // If one of the two ends early, so does the other.
      pipeline(isExported ? createReadStream(exported) : answer, response, removeExport);
      // The request ends only when its response has been read, even if it is empty.
      if (isExported) answer.resume();
    });
    passed.on('close', () => {
      if (!order.hasBegun) order.end();
      responded.resolve(false);
      closed.resolve();
      this.#responses.delete(closed.promise);
    });
    // The request is closed after an error.
    passed.on('error', () => {});
    response.once('close', () => passed.destroy());
    pipeline(request, passed, () => {});
    await ended;
    this.#orders.delete(number);
    const hasResponse = await responded.promise;
    if (!hasResponse) removeExport();
    return hasResponse;
  }

  /** Says that another organisation waits for the place. */
  wantPlace(): void {
    this.#send({ kind: 'place_wanted' });
  }

  /** Closes the replica. Resolves when it is closed, or the process has ended. */
  async close(): Promise<void> {
    await this.ready.catch(() => {});
    if (this.#closing === null) {
      this.#closing = Promise.withResolvers<void>();
      this.#send({ kind: 'close', lastOrder });
    }
    await Promise.race([this.#closing.promise, this.ended]);
    this.#closing = null;
  }

  /** Ends the process when the ends of all responses are sent. */
  async endOnceSent(): Promise<void> {
    await settledWithin(Promise.all(this.#responses), SENT_WITHIN_MS);
    this.kill();
  }

  suspend(): void {
    this.#child.kill('SIGSTOP');
  }

  resume(): void {
    this.#child.kill('SIGCONT');
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  #read(message: FromReplicaProcess): void {
    this.#quietLooks = 0;
    switch (message.kind) {
      case 'ready':
        this.#hasStarted = true;
        this.#started.resolve();
        break;
      case 'not_started':
        this.#notStarted = message.reason;
        break;
      case 'memory':
        this.#usedBytes = message.usedBytes;
        break;
      case 'order_begun': {
        const order = this.#orders.get(message.order);
        if (order !== undefined) order.hasBegun = true;
        break;
      }
      case 'order_ended':
        this.#orders.get(message.order)?.end();
        break;
      case 'closed':
        this.#isReusable = !message.isFileOpen;
        this.#closing?.resolve();
        break;
      case 'plan':
        void this.#plan(message);
        break;
      case 'stuck':
        this.#options.onStuck(this);
        break;
      case 'unusable':
        this.#options.onUnusable(message.orgId, message.reason);
    }
  }

  async #plan({ query, sql, parameters }: Extract<FromReplicaProcess, { kind: 'plan' }>): Promise<void> {
    const refusal = await this.#options.planner.plan(sql, parameters);
    this.#send({ kind: 'planned', query, refusal });
  }

  /** A process that has ended gets nothing, which its end explains. */
  #send(message: ToReplicaProcess): void {
    if (this.#child.connected) this.#child.send(message, () => {});
  }
}
