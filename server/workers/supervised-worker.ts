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
  /** Starts the worker. Called for the first start and for every restart. */
  start(): StartedWorker;
  /** Resolves when the started worker can be used. If this function is missing, a worker can be used at once. */
  whenReady?(started: StartedWorker): Promise<void>;
  onReady?(worker: Worker): void;
  /** Called if the worker ended by itself or could not be restarted. The worker is started again after a pause. */
  onLost(reason: Error, what: 'ended' | 'not started'): void;
}

const FIRST_RESTART_AFTER_MS = 100;
/**
 * The pause before a restart grows up to this limit. The pauses keep a thread that always ends right after its start
 * from overloading the machine.
 */
const LONGEST_RESTART_PAUSE_MS = 10_000;
/** If a thread ran for longer than this, it is assumed to have ended for a new reason, and the pause is short again. */
const STABLE_AFTER_MS = 60_000;

export class SupervisedWorker {
  readonly #supervision: Supervision;
  #started: StartedWorker;
  #running: Worker | null = null;
  #restartPauseMs = FIRST_RESTART_AFTER_MS;
  #restart: NodeJS.Timeout | undefined;
  #isClosing = false;

  /** Starts the worker at once, so that workers load their code in parallel. Call `open` before using it. */
  constructor(supervision: Supervision) {
    this.#supervision = supervision;
    this.#started = supervision.start();
  }

  /** The worker, or null while it is not ready: before its first start, and between its end and the next start. */
  get running(): Worker | null {
    return this.#running;
  }

  /** Resolves when the worker is ready. Rejects, without a retry, if the worker cannot be used. */
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

  /**
   * Ends the worker. If `finish` is given and the worker is running, `finish` must ask the worker to end. Otherwise the
   * worker is terminated at once.
   */
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
