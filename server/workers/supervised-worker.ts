// Starts worker threads, notices when they end, and restarts the ones that must keep running.

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
/** Keeps a thread that repeatedly ends at its start from overloading the machine. */
const LONGEST_RESTART_PAUSE_MS = 10_000;
/** After running this long, a thread is assumed to have ended for a new reason, and the pause starts over. */
const STABLE_AFTER_MS = 60_000;

export class SupervisedWorker {
  readonly #supervision: Supervision;
  #started: StartedWorker;
  #running: Worker | null = null;
  #restartPauseMs = FIRST_RESTART_AFTER_MS;
  #restart: NodeJS.Timeout | undefined;
  #isClosing = false;

  /** Starts the worker at once, so that several workers load their code in parallel. It can be used after `open`. */
  constructor(supervision: Supervision) {
    this.#supervision = supervision;
    this.#started = supervision.start();
  }

  /** Null before the worker is ready, and between its end and the next start. */
  get running(): Worker | null {
    return this.#running;
  }

  /** Resolves when the worker is ready. Rejects if it cannot be used, and then does not retry. */
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

  /** Ends the worker. `finish` asks a running worker to end; without it, the worker is terminated at once. */
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
