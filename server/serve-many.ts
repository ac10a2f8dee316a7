// Serves one port with several processes. The primary process starts the workers, replaces a worker that ends
// unexpectedly, and stops all workers. The workers share only the port and the database.

import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { FastifyListenOptions } from 'fastify';
import type { RunningServer } from './serve.ts';
import type { Settings } from './settings.ts';

const FIRST_RESTART_AFTER_MS = 200;
const LONGEST_RESTART_PAUSE_MS = 10_000;
const STOP_SIGNAL = 'SIGTERM';
/** The variable that tells a worker the port. */
const PORT_VARIABLE = 'HEADGATE_PORT_OF_WORKERS';
/**
 * On Linux, each worker has its own listening socket, and the kernel distributes connections among these. The primary
 * would hand over connections one at a time, each only when the worker has confirmed the one before, so that all clients
 * would wait while one opens hundreds of connections.
 */
const haveOwnSockets = process.platform === 'linux';

/** The message that a worker sends to the primary when it is serving. */
interface Listening {
  readonly listening: string;
}

/** A worker could not start, or did not stop properly. The worker itself has printed the reason on standard error. */
export class WorkerFailed extends Error {
  override readonly name = 'WorkerFailed';
}

export function isWorker(): boolean {
  return cluster.isWorker;
}

/** Returns where this process listens. */
export function listenOptions({ host, port }: Settings): FastifyListenOptions {
  if (!isWorker()) return { host, port };
  // Fastify passes on options that its type does not have.
  const isOwn = { reusePort: haveOwnSockets, exclusive: haveOwnSockets };
  return { host, port: Number(process.env[PORT_VARIABLE]), ...isOwn };
}

export function notifyPrimary(url: string): void {
  process.send!({ listening: url } satisfies Listening);
}

/**
 * Resolves when all workers are serving. Later, `tell` is called when a worker is lost or replaced. The first worker
 * starts alone, so that a problem that affects all workers, such as a port in use or an unusable database, is reported
 * once.
 */
export async function startWorkers(
  { host, port, workers: count, metricsHost, metricsPort }: Settings,
  tell: (sentence: string) => void,
  out: (line: string) => void,
): Promise<RunningServer> {
  let isClosing = false;
  let restartPauseMs = FIRST_RESTART_AFTER_MS;
  const serving = new Set<Worker>();
  let portOfWorkers = port;
  if (port !== 0) await refusePortInUse(host, port);

  const start = async (): Promise<{ readonly url: string; readonly worker: Worker }> => {
    const worker = cluster.fork({ [PORT_VARIABLE]: portOfWorkers });
    const url = await listening(worker);
    serving.add(worker);
    worker
      .once('exit', () => {
        serving.delete(worker);
        if (isClosing) return;
        tell(`${endOf(worker)} unexpectedly`);
        startAgain();
      })
      .on('error', ({ message }) => tell(`worker ${worker.process.pid} could not be reached: ${message}`));
    return { url, worker };
  };
  const startAgain = (): void => {
    setTimeout(() => {
      if (isClosing) return;
      start().then(
        ({ worker }) => {
          tell(`worker ${worker.process.pid} replaces it`);
          restartPauseMs = FIRST_RESTART_AFTER_MS;
        },
        (error: Error) => {
          if (isClosing) return;
          tell(error.message);
          startAgain();
        },
      );
    }, restartPauseMs);
    restartPauseMs = Math.min(restartPauseMs * 2, LONGEST_RESTART_PAUSE_MS);
  };

  let stopShowing = async (): Promise<void> => {};
  const close = async (): Promise<void> => {
    isClosing = true;
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
    await Promise.all(workers.map(stop));
    await stopShowing();
    const failed = workers.find(({ process: { exitCode, signalCode } }) =>
      exitCode === null ? signalCode !== STOP_SIGNAL : exitCode !== 0,
    );
    if (failed !== undefined) throw new WorkerFailed(endOf(failed));
  };

  try {
    if (metricsPort !== null) stopShowing = await showMetrics(serving, metricsHost, metricsPort, out);
    const { url } = await start();
    // If any free port will do, the others and their replacements listen on the one that the first has chosen.
    if (port === 0 && haveOwnSockets) portOfWorkers = Number(new URL(url).port);
    await Promise.all(Array.from({ length: count - 1 }, start));
    return { url, close };
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
}

/** Rejects if the port is in use. Otherwise the workers of two servers could share it unnoticed. */
async function refusePortInUse(host: string, port: number): Promise<void> {
  const server = createServer();
  await once(server.listen({ host, port }), 'listening');
  await once(server.close(), 'close');
}

/** Serves the merged metrics of all workers. Resolves to a function that stops serving them. */
async function showMetrics(
  serving: ReadonlySet<Worker>,
  host: string,
  port: number,
  out: (line: string) => void,
): Promise<() => Promise<void>> {
  const { MergedMetrics } = await import('./observe/merged-metrics.ts');
  const { serveMetrics } = await import('./observe/metrics-server.ts');
  const merged = new MergedMetrics(() => serving);
  const stop = await serveMetrics(host, port, () => merged.text(), out);
  return async () => {
    merged.close();
    await stop();
  };
}

/** Resolves to the URL that the worker serves. Ignores other messages of the worker. */
function listening(worker: Worker): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const onMessage = ({ listening: url }: Partial<Listening>): void => {
    if (url !== undefined) resolve(url);
  };
  const onExit = (): void => reject(new WorkerFailed(`${endOf(worker)} before it was ready`));
  const onError = ({ message }: Error): void =>
    reject(new WorkerFailed(`a worker could not be started: ${message}`));
  worker.on('message', onMessage).on('exit', onExit).on('error', onError);
  return promise.finally(() => {
    worker.off('message', onMessage).off('exit', onExit).off('error', onError);
  });
}

/**
 * Stops a worker with a signal. The signal kills a worker that has not installed its signal handler yet. That does no
 * harm, because such a worker has no requests.
 */
async function stop(worker: Worker): Promise<void> {
  if (worker.isDead()) return;
  const ended = Promise.withResolvers<void>();
  worker.once('exit', () => ended.resolve());
  worker.process.kill(STOP_SIGNAL);
  await ended.promise;
}

function endOf({ process: { pid, exitCode, signalCode } }: Worker): string {
  return `worker ${pid} ended with ${signalCode ?? `exit code ${exitCode}`}`;
}
