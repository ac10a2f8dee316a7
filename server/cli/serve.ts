// `headgate serve`: starts the service, and stops it on a signal.

import { setTimeout } from 'node:timers/promises';
import { Failure } from '../failure.ts';
import type { RunningServer } from '../serve.ts';
import { isWorker, listenOptions, notifyPrimary, startWorkers, WorkerFailed } from '../serve-many.ts';
import { environmentName, readSettings, type Settings, settingWarnings } from '../settings.ts';
import type { TlsPair } from '../tls.ts';
import type { Call } from './call.ts';
import { type ExitCode, exitCodes, failed, type Io, misused } from './io.ts';
import { version } from './version.ts';

/** npm repeats a Ctrl-C that the terminal already delivered, so two signals within this time count as one. */
const SAME_SIGNAL_MS = 300;
/** The primary waits this much longer than its workers, so that a worker reports a shutdown timeout first. */
const WORKERS_HEAD_START_MS = 2000;

export async function serve({ io, option }: Call): Promise<ExitCode> {
  const warnings = isWorker() ? [] : settingWarnings(io.env);
  for (const warning of warnings) io.err(`headgate: warning: ${warning}`);
  const settings = readSettings(io.env, {
    host: option('host'),
    port: option('port'),
    database: option('database'),
    workers: option('workers'),
  });
  if (settings instanceof Failure) return misused(io, settings);
  const { readTls } = await import('../tls.ts');
  const tls = await readTls(settings);
  if (tls instanceof Failure) return misused(io, tls);

  const { firstSignal, secondSignal } = stopSignals();
  const starting = start(settings, tls, io).catch((error: unknown) => {
    if (error instanceof WorkerFailed) return error;
    const sentence = whyNotStarted(error, settings);
    if (sentence === null) throw error;
    return new Failure(sentence);
  });
  const timeoutMs = settings.shutdownTimeoutMs + (isPrimary(settings) ? WORKERS_HEAD_START_MS : 0);
  const late = (what: string): Failure =>
    new Failure(`${what} within ${settings.shutdownTimeoutMs / 1000} s; stopped without waiting`);
  // A start can take hours, for example if it waits until another process has migrated the database.
  const stoppedAtStart = firstSignal.then(() => setTimeout(timeoutMs, late('the server did not start')));
  const started = await Promise.race([starting, stoppedAtStart, secondSignal]);
  if (started === undefined || started instanceof WorkerFailed) return exitCodes.failed;
  if (started instanceof Failure) return failed(io, started);

  await firstSignal;
  return Promise.race([
    started.close().then(
      () => exitCodes.done,
      (error: unknown) => {
        if (error instanceof WorkerFailed) return exitCodes.failed;
        throw error;
      },
    ),
    secondSignal.then(() => exitCodes.failed),
    setTimeout(timeoutMs).then(() => failed(io, late('requests in flight did not end'))),
  ]);
}

function isPrimary({ workers }: Settings): boolean {
  return workers > 1 && !isWorker();
}

/** If there are several workers, the primary process only starts them, and each worker runs a server. */
async function start(settings: Settings, tls: TlsPair | null, io: Io): Promise<RunningServer> {
  if (isPrimary(settings)) {
    const running = await startWorkers(settings, (sentence) => io.err(`headgate: ${sentence}`), io.out);
    io.out(`listening on ${running.url}`);
    return running;
  }
  const { startServer } = await import('../serve.ts');
  const { out, env, isTerminal } = io;
  const running = await startServer(settings, tls, {
    out,
    env,
    isTerminal,
    version,
    isWorker: isWorker(),
    listenOptions: listenOptions(settings),
  });
  if (isWorker()) notifyPrimary(running.url);
  else io.out(`listening on ${running.url}`);
  return running;
}

function stopSignals(): { readonly firstSignal: Promise<void>; readonly secondSignal: Promise<void> } {
  const first = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  let firstAtMs: number | null = null;
  const onSignal = (): void => {
    const nowMs = performance.now();
    if (firstAtMs === null) {
      firstAtMs = nowMs;
      first.resolve();
    } else if (nowMs - firstAtMs > SAME_SIGNAL_MS) {
      second.resolve();
    }
  };
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  return { firstSignal: first.promise, secondSignal: second.promise };
}

/** An error about listening names one of these calls. In a worker it can be `bind`, because the primary listens. */
const listeningCalls = ['listen', 'bind', 'getaddrinfo'];

/** Returns a sentence for an error that an operator can fix, and null for any other error, which is a bug. */
function whyNotStarted(error: unknown, settings: Settings): string | null {
  if (!(error instanceof Error)) return null;
  const { code, syscall } = error as NodeJS.ErrnoException;
  const { host, port, flag } = wanted(error, settings);
  if (syscall === undefined || !listeningCalls.includes(syscall)) return null;
  if (code === 'EADDRINUSE')
    return `port ${port} on ${host} is taken by another program; give another with ${flag.port}`;
  if (code === 'EACCES')
    return `this user may not listen on port ${port}; give one above 1023 with ${flag.port}`;
  if (code === 'EADDRNOTAVAIL')
    return `${host} is not an address of this machine; give another with ${flag.host}`;
  return `cannot listen on ${host} port ${port}: ${error.message}`;
}

interface WantedPlace {
  readonly host: string;
  readonly port: number;
  /** The options or environment variables that set the host and the port. */
  readonly flag: { readonly host: string; readonly port: string };
}

/** Returns the address on which listening failed: the metrics address if the error names it, else the public one. */
function wanted(error: Error, { host, port, metricsHost, metricsPort }: Settings): WantedPlace {
  const told = error as { readonly port?: number; readonly hostname?: string };
  const isMetrics =
    metricsPort !== null && (told.port === undefined ? told.hostname !== host : told.port === metricsPort);
  return isMetrics
    ? {
        host: metricsHost,
        port: metricsPort,
        flag: { host: environmentName('metricsHost'), port: environmentName('metricsPort') },
      }
    : { host, port, flag: { host: '--host', port: '--port' } };
}
