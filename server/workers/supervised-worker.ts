// Worker threads: how one is started, how its end is noticed, and how one that must not be missing is started again.

import { Worker, type WorkerOptions } from 'node:worker_threads';

export interface StartedWorker {
  readonly worker: Worker;
  /** Resolves with the reason when the thread has ended. It never rejects. */
  readonly ended: Promise<Error>;
}

export function startWorker(script: URL, options: WorkerOptions): StartedWorker {
  const worker = new Worker(script, options);
  const ended = new Promise<Error>((resolve) => {
    let reason = new Error('it stopped');
    worker.on('error', (error) => {
      reason = error instanceof Error ? error : new Error(String(error));
    });
    worker.on('exit', () => resolve(reason));
  });
  return { worker, ended };
}

export interface Supervision {
  /** Called for the first start and for every further one. */
  start(): StartedWorker;
  /** Resolves when the started worker can be used. Without it, a worker can be used at once. */
  whenReady?(started: StartedWorker): Promise<void>;
  onReady?(worker: Worker): void;
  /** The worker ended by itself, or could not be started again. It is started again after a pause. */
  onLost(reason: Error, what: 'ended' | 'not started'): void;
}

const FIRST_RESTART_AFTER_MS = 100;
/** A thread that ends again and again at its start must not take the machine with it. */
const LONGEST_RESTART_PAUSE_MS = 10_000;
/** A thread that has lived this long ended for another reason than its predecessor. */
const STABLE_AFTER_MS = 60_000;

export class SupervisedWorker {
  readonly #supervision: Supervision;
  #started: StartedWorker;
  #running: Worker | null = null;
  #restartPauseMs = FIRST_RESTART_AFTER_MS;
  #restart: NodeJS.Timeout | undefined;
  #isClosing = false;

  /** Starts the worker, so that several load their code at the same time. It is used after `open`. */
  constructor(supervision: Supervision) {
    this.#supervision = supervision;
    this.#started = supervision.start();
  }

  /** Null before the worker is ready, and between its end and the next start. */
  get running(): Worker | null {
    return this.#running;
  }

  /** Rejects if the worker cannot be used; then it is not tried again. */
  async open(): Promise<void> {
    const { whenReady, onReady, onLost } = this.#supervision;
    const started = this.#started;
    if (whenReady !== undefined) await whenReady(started);
    this.#running = started.worker;
    const readyAtMs = performance.now();
    void started.ended.then((reason) => {
      this.#running = null;
      if (this.#isClosing) return;
      if (performance.now() - readyAtMs > STABLE_AFTER_MS) this.#restartPauseMs = FIRST_RESTART_AFTER_MS;
      this.#startAgainLater();
      onLost(reason, 'ended');
    });
    onReady?.(started.worker);
  }

  /** `finish` asks a running worker to end; without it, the worker is ended at once. */
  async close(finish?: (worker: Worker) => void): Promise<void> {
    this.#isClosing = true;
    clearTimeout(this.#restart);
    if (finish === undefined || this.#running === null) await this.#started.worker.terminate();
    else {
      finish(this.#running);
      await this.#started.ended;
    }
  }

  #startAgainLater(): void {
    this.#restart = setTimeout(() => void this.#startAgain(), this.#restartPauseMs);
    this.#restart.unref();
    this.#restartPauseMs = Math.min(this.#restartPauseMs * 4, LONGEST_RESTART_PAUSE_MS);
  }

  async #startAgain(): Promise<void> {
    this.#started = this.#supervision.start();
    try {
      await this.open();
    } catch (error) {
      if (this.#isClosing) return;
      this.#startAgainLater();
      this.#supervision.onLost(error as Error, 'not started');
    }
  }
}
