// The analytics process. It keeps the replicas and runs queries on them, for all servers of this machine that use the
// same database. So a query can fail, or end this process, without harm to uploads. It ends when no server needs it, or
// none has used it for a while.

import { existsSync, mkdirSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { flushCompileCache } from 'node:module';
import { availableParallelism } from 'node:os';
import { json } from 'node:stream/consumers';
import { keepNewFilesPrivate } from '../private-files.ts';
import { openStore } from '../store/open-store.ts';
import { StoreUnavailable } from '../store/store.ts';
import {
  type AnalyticsSetup,
  type EvaluationOrder,
  type ExplanationOrder,
  type Order,
  type OrderRefusal,
  type PreviewOrder,
  REFUSED_STATUS,
  type ReportOrder,
  SETUP_VARIABLE,
  type SqlOrder,
  socketPath,
} from './analytics-orders.ts';
import { CrashSuspects } from './crash-suspects.ts';
import { failToLoad } from './load-failure.ts';
import { MemoryTakers } from './memory-takers.ts';
import { takeProcessLock } from './process-lock.ts';
import { withPromptReads } from './prompt-reads.ts';
import { CATCH_UP_MS, storeUnresponsive } from './replica-use.ts';
import { MOST_OPEN_REPLICAS, Replicas } from './replicas.ts';
import { answerReport } from './reports/answer-report.ts';
import { answerExplanation, answerPreview } from './segments/answer-segments.ts';
import { evaluateSegments } from './segments/evaluate-segments.ts';
import { answerSql } from './sql/answer-sql.ts';
import { QueryChecks } from './sql/query-checks.ts';

/** How long the process stays after the last server has left. */
const LEAVE_AFTER_MS = 2000;
const MOST_TEMPORARY_MB = 10_000;
/** How long to wait for the lock, because the process before this one may still be ending. */
const LOCKED_WITHIN_MS = 1000;
const GIVE_UP_AFTER_MS = 500;
const LOOK_EVERY_MS = 100;
/** What the process itself, the store and single values may use besides DuckDB's own limit. */
const MEMORY_BESIDES_MB = 1024;
const MEBIBYTE = 1024 ** 2;
/** When the machine's memory is used up, Linux ends the process with the highest score. */
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
process.off('uncaughtException', failToLoad);
process.once('uncaughtException', failToStart);

mkdirSync(setup.folder, { recursive: true });
const socket = socketPath(setup);
// If another server has started a process at the same moment, that one serves.
if (takeProcessLock(`${socket}.lock`, LOCKED_WITHIN_MS) === null) process.exit(0);

const temporaryFolder = `${socket}.temporary`;
const exportFolder = `${socket}.exports`;
for (const folder of [temporaryFolder, exportFolder]) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
}
rmSync(socket, { force: true });
const opened = await openStore(setup.database, report).catch((error: Error) => {
  report(error.message);
  // Organisations see the last line, but the address of the database is not for them.
  throw new Error('the store cannot be opened');
});
const store = withPromptReads(opened, CATCH_UP_MS);
// The disk may also have the database, which must not run out of space.
const { bavail, bsize } = statfsSync(setup.folder);
const temporaryMb = Math.min(MOST_TEMPORARY_MB, (bavail * bsize) / MEBIBYTE / 2);
const options = {
  memoryMb: Math.floor(setup.memoryMb / MOST_OPEN_REPLICAS),
  temporaryMb: Math.floor(temporaryMb / MOST_OPEN_REPLICAS),
  threads: availableParallelism(),
  temporaryFolder,
  exportFolder,
};
const suspects = new CrashSuspects(socket, report);
const checks = new QueryChecks();
const memoryTakers = new MemoryTakers(process.memoryUsage.rss);
const replicas = new Replicas(store, setup.folder, options, suspects, memoryTakers, report);

/**
 * Ends the process, which only a new one can make good: all its queries fail, and servers start another. An exit would
 * wait for the queries.
 */
const giveUp = (reason: string): void => {
  report(`${reason}; the analytics process is started again`);
  process.kill(process.pid, 'SIGKILL');
};

/** The connections by which servers show that they still exist. */
const servers = new Set<ServerResponse>();

/** Lets servers start the next process already, so that queries wait less for it. */
const announceEnd = (): void => {
  for (const server of servers) server.write('ending');
};

let isEnding = false;

/** Ends the process because of somebody's queries, and accuses whoever may be the reason. */
const endBecauseOf = (orgIds: ReadonlySet<string>, reason: string, afterMs: number): void => {
  if (isEnding) return;
  isEnding = true;
  setTimeout(giveUp, afterMs, reason);
  announceEnd();
  suspects.accuse(orgIds);
  replicas.trustFilesOfOthers(orgIds);
};

/** What an order needs. */
const serviceFor = ({ orgId }: Order) => ({
  checks,
  replicas,
  exportFolder,
  onStuck(): void {
    // The refusal is sent before.
    endBecauseOf(new Set([orgId]), 'a query could not be stopped', GIVE_UP_AFTER_MS);
  },
});

// DuckDB's memory limit does not include single values, nor what some functions collect. A query can make these as large
// as it likes.
const lookAtMemory = (): void => {
  const isTooMuch = memoryTakers.look() > (setup.memoryMb + MEMORY_BESIDES_MB) * MEBIBYTE;
  if (isTooMuch) endBecauseOf(memoryTakers.takers(), 'a query needed too much memory', 0);
};

/** Identifies the file of the socket, or is undefined if there is none. */
const socketFile = (): string | undefined => {
  const found = statSync(socket, { throwIfNoEntry: false });
  return found && `${found.ino} ${found.mtimeMs}`;
};

/** If the folder was deleted, another process may write files with the same names. So this one must not close its own. */
const lookAtFolder = (ownSocketFile: string | undefined): void => {
  if (socketFile() !== ownSocketFile) {
    giveUp('the folder was deleted');
  } else if (!existsSync(temporaryFolder) || !existsSync(exportFolder)) {
    // DuckDB does not make its folder again.
    suspects.removeMarks();
    giveUp('a folder for temporary files was deleted');
  }
};

let leaving: NodeJS.Timeout | undefined;

const leaveIfUnused = (): void => {
  clearTimeout(leaving);
  if (servers.size === 0) leaving = setTimeout(stop, LEAVE_AFTER_MS);
};

let looking: NodeJS.Timeout | undefined;
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
  clearInterval(looking);
  suspects.removeMarks();
  // From here on, a server that looks for this process finds none and starts another.
  rmSync(socket, { force: true });
  server.close();
  await replicas.close();
  await store.close();
  process.exit(0);
};

/** The orders whose answer is JSON, by their paths. */
const jsonOrders: Readonly<Record<string, (order: never, signal: AbortSignal) => Promise<object>>> = {
  '/report': (order: ReportOrder, signal) => answerReport(serviceFor(order), order, signal),
  '/preview': (order: PreviewOrder, signal) => answerPreview(serviceFor(order), store, order, signal),
  '/explanation': (order: ExplanationOrder, signal) =>
    answerExplanation(serviceFor(order), store, order, signal),
  '/evaluation': (order: EvaluationOrder, signal) =>
    evaluateSegments(serviceFor(order), store, order, signal),
};

const sendJson = async (
  answer: (order: never, signal: AbortSignal) => Promise<object>,
  order: never,
  response: ServerResponse,
): Promise<OrderRefusal | null> => {
  const left = new AbortController();
  response.on('close', () => left.abort());
  const answered = await answer(order, left.signal);
  if ('kind' in answered) return answered as OrderRefusal;
  response.end(JSON.stringify(answered));
  return null;
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
  const order = await json(request);
  const answer = jsonOrders[request.url!];
  const refusal =
    answer === undefined
      ? await answerSql(serviceFor(order as Order), order as SqlOrder, response)
      : await sendJson(answer, order as never, response);
  if (refusal !== null) refuse(response, refusal);
};

const refuse = (response: ServerResponse, refusal: OrderRefusal): void => {
  if (response.headersSent) response.destroy();
  else response.writeHead(REFUSED_STATUS).end(JSON.stringify(refusal));
};

/** If an order fails unexpectedly, it is refused, because servers send it again if they get no response. */
const failed: OrderRefusal = {
  kind: 'unavailable',
  message: 'The query failed unexpectedly; the operator can find the reason in the log.',
  position: null,
};

const server = createServer((request, response) => {
  serve(request, response).catch((error: Error) => {
    const isUnresponsive = error instanceof StoreUnavailable;
    report(isUnresponsive ? error.message : (error.stack ?? error.message));
    refuse(response, isUnresponsive ? storeUnresponsive : failed);
  });
});
server.requestTimeout = 0;
server.listen(socket, () => {
  process.off('uncaughtException', failToStart);
  const ownSocketFile = socketFile();
  looking = setInterval(() => {
    lookAtMemory();
    lookAtFolder(ownSocketFile);
  }, LOOK_EVERY_MS).unref();
  leaveIfUnused();
  // Otherwise Node stores compiled modules only if the process exits normally.
  flushCompileCache();
});
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop());
