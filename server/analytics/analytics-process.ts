// The analytics process. It passes orders on to replica processes, for all servers of this machine that use the same
// database, and ends one if they use too much memory. It ends when no server needs it, or none has used it for a while.

import { existsSync, mkdirSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { flushCompileCache } from 'node:module';
import { availableParallelism } from 'node:os';
import { keepNewFilesPrivate } from '../private-files.ts';
import { settledWithin } from '../settled-within.ts';
import {
  type AnalyticsSetup,
  ORGANISATION_HEADER,
  type OrderRefusal,
  REFUSED_STATUS,
  replicaSocketPath,
  SETUP_VARIABLE,
  socketPath,
} from './analytics-orders.ts';
import { MOST_PLACES, Places } from './places.ts';
import { takeProcessLock } from './process-lock.ts';
import { RefusalLog } from './refusal-log.ts';
import { QueryPlanner } from './sql/query-planner.ts';
import { StartedReplicaProcess } from './started-replica-process.ts';

/** How long the process stays after the last server has left. */
const LEAVE_AFTER_MS = 2000;
const MOST_TEMPORARY_MB = 10_000;
/** How long to wait for the lock, because the process before this one may still be ending. */
const LOCKED_WITHIN_MS = 1000;
const LOOK_EVERY_MS = 100;
/** How long replicas may take to be closed when the process stops. */
const CLOSED_WITHIN_MS = 3000;
/** What replica processes may use besides DuckDB's own limits: for themselves, their stores and single values. */
const MEMORY_BESIDES_MB = 1024;
const MEBIBYTE = 1024 ** 2;
/** When the machine's memory is used up, Linux ends the process with the highest score. Child processes have the same. */
const OUT_OF_MEMORY_SCORE = '/proc/self/oom_score_adj';
const HIGHEST_SCORE = '1000';

keepNewFilesPrivate();
try {
  writeFileSync(OUT_OF_MEMORY_SCORE, HIGHEST_SCORE);
} catch {
  // Other systems have no such file, and a sandbox may make it read-only. Queries run nevertheless.
}
const setup = JSON.parse(process.env[SETUP_VARIABLE]!) as AnalyticsSetup;
delete process.env[SETUP_VARIABLE];
const report = (message: string): void => void process.stderr.write(`${message}\n`);
/** The server that has started this process passes the line on. */
const failToStart = (error: Error): void => {
  report(error.message);
  // If only the folder was deleted meanwhile, the server makes it again and starts the next process at once.
  process.exit(existsSync(setup.folder) ? 1 : 0);
};
process.once('uncaughtException', failToStart);

mkdirSync(setup.folder, { recursive: true });
const socket = socketPath(setup);
// If another server has started a process at the same moment, that one serves.
if (takeProcessLock(`${socket}.lock`, LOCKED_WITHIN_MS) === null) process.exit(0);

resumeEarlier(`${socket}.pid`);
const temporaryFolder = `${socket}.temporary`;
const exportFolder = `${socket}.exports`;
for (const folder of [temporaryFolder, exportFolder]) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
}
rmSync(socket, { force: true });
// The disk may also have the database, which must not run out of space.
const { bavail, bsize } = statfsSync(setup.folder);
const temporaryMb = Math.min(MOST_TEMPORARY_MB, (bavail * bsize) / MEBIBYTE / 2);
const options = {
  memoryMb: Math.floor(setup.memoryMb / MOST_PLACES),
  temporaryMb: Math.floor(temporaryMb / MOST_PLACES),
  threads: availableParallelism(),
  temporaryFolder,
  exportFolder,
};
const planner = new QueryPlanner();
const refusals = new RefusalLog(report);
/** The numbers of the replica processes that have not ended. */
const numbers = new Set<number>();

const startProcess = (): StartedReplicaProcess => {
  let number = 1;
  while (numbers.has(number)) number++;
  const { database, folder } = setup;
  const started = new StartedReplicaProcess({
    setup: { database, folder, socket: replicaSocketPath(setup, number), options },
    planner,
    onStuck: (stuck) => places.onStuck(stuck),
    onUnusable: (orgId, reason) => refusals.add(orgId, reason),
  });
  numbers.add(number);
  void started.ended.then(() => numbers.delete(number));
  return started;
};

const places = new Places({
  startProcess,
  mostBytes: (setup.memoryMb + MEMORY_BESIDES_MB) * MEBIBYTE,
  report,
});

/** Ends the process. Replica processes notice that and end, too. A server starts the next one. */
const giveUp = (reason: string): void => {
  report(`${reason}; the analytics process is started again`);
  resumeGroup(process.pid);
  process.kill(process.pid, 'SIGKILL');
};

/** Identifies the file of the socket, or is undefined if there is none. */
const socketFile = (): string | undefined => {
  const found = statSync(socket, { throwIfNoEntry: false });
  return found && `${found.ino} ${found.mtimeMs}`;
};
let ownSocketFile: string | undefined;

/** If the folder was deleted, another process may write files with the same names. So this one must not close its own. */
const lookAtFolder = (): void => {
  if (socketFile() !== ownSocketFile) {
    giveUp('the folder was deleted');
  } else if (!existsSync(temporaryFolder) || !existsSync(exportFolder)) {
    // DuckDB does not make its folder again.
    giveUp('a folder for temporary files was deleted');
  }
};

/** The connections by which servers show that they still exist. */
const servers = new Set<ServerResponse>();
let leaving: NodeJS.Timeout | undefined;

const leaveIfUnused = (): void => {
  clearTimeout(leaving);
  if (servers.size === 0) leaving = setTimeout(stop, LEAVE_AFTER_MS);
};

let isStopping = false;
let orders = 0;
let resting: NodeJS.Timeout | undefined;

/** Counts an order. Ends the process when there was none for a while. */
const countOrder = (response: ServerResponse): void => {
  orders++;
  clearTimeout(resting);
  response.on('close', () => {
    orders--;
    if (orders === 0) resting = setTimeout(stop, setup.idleMs);
  });
};

const stop = async (): Promise<void> => {
  if (isStopping) return;
  isStopping = true;
  // From here on, a server that looks for this process finds none and starts another.
  rmSync(socket, { force: true });
  server.close();
  await settledWithin(places.close(), CLOSED_WITHIN_MS);
  resumeGroup(process.pid);
  // Replica processes notice that and end, too. A replica that was not closed is good, too.
  process.exit(0);
};

const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  if (request.url === '/stay') {
    servers.add(response);
    clearTimeout(leaving);
    response.on('close', () => {
      servers.delete(response);
      leaveIfUnused();
    });
    response.flushHeaders();
    return;
  }
  if (request.url === '/alive') {
    response.end();
    return;
  }
  countOrder(response);
  const left = new AbortController();
  response.once('close', () => left.abort());
  const orgId = String(request.headers[ORGANISATION_HEADER]);
  const refusal = await places.with(orgId, left.signal, (process) => process.pass(request, response));
  if (refusal === null) return;
  // The refusal may be a consequence, and the next process can carry out the order.
  if (!isStopping) lookAtFolder();
  refuse(response, refusal);
};

const refuse = (response: ServerResponse, refusal: OrderRefusal): void => {
  response.writeHead(REFUSED_STATUS).end(JSON.stringify(refusal));
};

const failed: OrderRefusal = {
  kind: 'unavailable',
  message: 'The query failed unexpectedly; the operator can find the reason in the log.',
  position: null,
};

/** If the process before this one was killed while a replica process was suspended, that one still has its file open. */
function resumeEarlier(pidFile: string): void {
  if (existsSync(pidFile)) resumeGroup(Number(readFileSync(pidFile, 'utf8')));
  writeFileSync(pidFile, String(process.pid));
}

/**
 * Resumes the replica processes of an analytics process that has ended or is about to. They notice that, and end. All of
 * them belong to the group that has its number.
 */
function resumeGroup(pid: number): void {
  try {
    // A signal to group 1 would go to all processes.
    if (pid > 1) process.kill(-pid, 'SIGCONT');
  } catch {
    // There is no such group any more. To resume another one that has the number now would do no harm.
  }
}

const server = createServer((request, response) => {
  serve(request, response).catch((error: Error) => {
    report(error.stack ?? error.message);
    if (response.headersSent) response.destroy();
    else refuse(response, failed);
  });
});
server.requestTimeout = 0;
server.listen(socket, () => {
  process.off('uncaughtException', failToStart);
  ownSocketFile = socketFile();
  setInterval(() => {
    places.look();
    if (!isStopping) lookAtFolder();
  }, LOOK_EVERY_MS).unref();
  leaveIfUnused();
  // Otherwise Node stores compiled modules only if the process exits normally.
  flushCompileCache();
});
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop());
