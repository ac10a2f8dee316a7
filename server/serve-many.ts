// One port, several processes: a primary that starts workers, starts again one that ended, and stops them all.
// The workers share nothing but the port and the database.

import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import type { RunningServer } from './serve.ts';

const FIRST_RESTART_AFTER_MS = 200;
const LONGEST_RESTART_PAUSE_MS = 10_000;

/** What a worker tells the primary when it can answer. */
interface Listening {
  readonly listening: string;
}

/** The first worker could not start; it has said why on standard error. */
export class WorkerNotStarted extends Error {
  override readonly name = 'WorkerNotStarted';
  readonly exitCode: number;
  constructor(exitCode: number) {
    super(`a worker ended with exit code ${exitCode} before it could answer`);
    this.exitCode = exitCode;
  }
}

export function isWorker(): boolean {
  return cluster.isWorker;
}

export function tellPrimary(url: string): void {
  process.send!({ listening: url } satisfies Listening);
}

/**
 * Resolves when all workers can answer. The first one starts alone: what keeps it from starting (a taken port,
 * an unusable database) would keep the others, and is said once.
 */
export async function startWorkers(
  count: number,
  onWorkerLost: (reason: string) => void,
): Promise<RunningServer> {
  let isClosing = false;
  let restartPauseMs = FIRST_RESTART_AFTER_MS;

  const start = async (): Promise<string> => {
    const worker = cluster.fork();
    const url = await listening(worker);
    void once(worker, 'exit').then(([code, signal]) => {
      if (isClosing) return;
      onWorkerLost(`worker ${worker.process.pid} ended unexpectedly (${signal ?? `exit code ${code}`})`);
      startAgain();
    });
    return url;
  };
  const startAgain = (): void => {
    setTimeout(() => {
      if (isClosing) return;
      start().then(
        () => {
          restartPauseMs = FIRST_RESTART_AFTER_MS;
        },
        (error: Error) => {
          onWorkerLost(error.message);
          startAgain();
        },
      );
    }, restartPauseMs);
    restartPauseMs = Math.min(restartPauseMs * 2, LONGEST_RESTART_PAUSE_MS);
  };

  const close = async (): Promise<void> => {
    isClosing = true;
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
    await Promise.all(
      workers.map(async (worker) => {
        const ended = once(worker, 'exit');
        worker.process.kill('SIGTERM');
        await ended;
      }),
    );
  };

  try {
    const url = await start();
    await Promise.all(Array.from({ length: count - 1 }, start));
    return { url, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function listening(worker: Worker): Promise<string> {
  const told = once(worker, 'message').then(([message]) => (message as Listening).listening);
  const ended = once(worker, 'exit').then(([code]) => {
    throw new WorkerNotStarted(code ?? 1);
  });
  return Promise.race([told, ended]);
}
