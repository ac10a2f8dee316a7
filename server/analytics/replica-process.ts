// A replica process. It opens the replica of one organisation at a time and runs queries on it, so a query that ends the
// process harms no other organisation.

import './start-failure.ts';
import { existsSync, readdirSync, readlinkSync, realpathSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { flushCompileCache } from 'node:module';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { keepNewFilesPrivate } from '../private-files.ts';
import { openReplicaStore } from '../store/open-store.ts';
import { StoreUnavailable } from '../store/store.ts';
import {
  type EvaluationOrder,
  type ExplanationOrder,
  type Order,
  type OrderRefusal,
  type PreviewOrder,
  REFUSED_STATUS,
  type ReportOrder,
  type SqlOrder,
} from './analytics-orders.ts';
import { withPromptReads } from './prompt-reads.ts';
import { Replica } from './replica.ts';
import {
  exportPath,
  type FromReplicaProcess,
  ORDER_HEADER,
  REPLICA_SETUP_VARIABLE,
  type ReplicaProcessSetup,
  type ToReplicaProcess,
} from './replica-process-messages.ts';
import { CATCH_UP_MS, storeUnresponsive } from './replica-use.ts';
import { answerReport } from './reports/answer-report.ts';
import { answerExplanation, answerPreview } from './segments/answer-segments.ts';
import { evaluateSegment } from './segments/evaluate-segment.ts';
import { answerSql } from './sql/answer-sql.ts';
import { QueryChecks } from './sql/query-checks.ts';
import { endWithReason, failToLoad } from './start-failure.ts';

const SEND_MEMORY_EVERY_MS = 100;
/** On Linux, this folder has a link to every file that the process has open. */
const OPEN_FILES = '/proc/self/fd';

keepNewFilesPrivate();
const setup = JSON.parse(process.env[REPLICA_SETUP_VARIABLE]!) as ReplicaProcessSetup;
delete process.env[REPLICA_SETUP_VARIABLE];
const { database, socket, options } = setup;
const folder = realpathSync(setup.folder);
const report = (message: string): void => void process.stderr.write(`${message}\n`);
const send = (message: FromReplicaProcess): void => {
  // If the analytics process has ended, this process is about to end, too.
  if (process.connected) process.send!(message, () => {});
};

let opened: { readonly orgId: string; readonly replica: Replica } | null = null;
let placeWanted = new AbortController();
/** The last order for a replica that was closed. */
let lastClosedOrder = 0;
/** Each settles when its order no longer uses the replica. */
const uses = new Set<Promise<void>>();

process.on('disconnect', () => {
  // The replica is not the reason.
  opened?.replica.trustFile();
  // An exit would wait for the queries.
  process.kill(process.pid, 'SIGKILL');
});
// The analytics process gets these signals, too, and closes this one.
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => {});
process.off('uncaughtException', failToLoad);
// Clients see the reason, but the address of the database is not for them.
const store = await openReplicaStore(database, report).catch((error: Error) =>
  endWithReason('the store cannot be opened', error),
);
const promptStore = withPromptReads(store, CATCH_UP_MS);

let lastQuery = 0;
const planned = new Map<number, (refusal: OrderRefusal | null) => void>();
const checks = new QueryChecks(
  (sql, parameters) =>
    new Promise((resolve) => {
      planned.set(++lastQuery, resolve);
      send({ kind: 'plan', query: lastQuery, sql, parameters });
    }),
);

process.on('message', (message: ToReplicaProcess) => {
  switch (message.kind) {
    case 'place_wanted':
      placeWanted.abort();
      break;
    case 'close':
      void close(message.lastOrder);
      break;
    case 'planned':
      planned.get(message.query)?.(message.refusal);
      planned.delete(message.query);
  }
});

async function close(lastOrder: number): Promise<void> {
  lastClosedOrder = lastOrder;
  // Clients may have left while their orders were on the way to this process.
  await Promise.all(uses);
  const orgId = opened?.orgId;
  await opened?.replica.close();
  opened = null;
  placeWanted = new AbortController();
  send({ kind: 'closed', isFileOpen: orgId !== undefined && isFileOpen(replicaPath(orgId)) });
}

const replicaPath = (orgId: string): string => join(folder, `${orgId}.duckdb`);

/**
 * Returns whether this process may still have a file open. DuckDB closes it only when all its results are freed, and a
 * result that was not read to its end waits for the garbage collector.
 */
function isFileOpen(path: string): boolean {
  if (!existsSync(OPEN_FILES)) return true;
  return readdirSync(OPEN_FILES).some((file) => targetOf(join(OPEN_FILES, file)) === path);
}

/** Returns null for a file that has been closed meanwhile. */
function targetOf(link: string): string | null {
  try {
    return readlinkSync(link);
  } catch {
    return null;
  }
}

/** Returns the replica of the order's organisation. The process has only that one until it is told to close it. */
function replicaOf({ organisation, orgId }: Order): Replica {
  if (opened === null) {
    // DuckDB's temporary files have the same names in every database, so each needs its own folder.
    const temporaryFolder = join(options.temporaryFolder, orgId);
    const reportOf = (message: string): void =>
      report(`organisation ${orgId}: ${message.replaceAll('\n', ' ')}`);
    const replica = new Replica(
      replicaPath(orgId),
      { ...options, temporaryFolder },
      promptStore,
      organisation,
      reportOf,
    );
    opened = { orgId, replica };
  }
  if (opened.orgId !== orgId) throw new Error('this process has the replica of another organisation');
  return opened.replica;
}

/** What an order needs. */
const serviceFor = (order: Order, number: number, onUse: (use: Promise<unknown>) => void) => ({
  checks,
  replica: replicaOf(order),
  placeWanted: placeWanted.signal,
  exportedTo: exportPath(options.exportFolder, number),
  folder,
  onUse,
  onStuck: () => send({ kind: 'stuck' }),
  onUnusable: (reason: string) => send({ kind: 'unusable', orgId: order.orgId, reason }),
});

type Service = ReturnType<typeof serviceFor>;

/** The orders whose answer is JSON, by their paths. */
const jsonOrders: Readonly<
  Record<string, (service: Service, order: never, signal: AbortSignal) => Promise<object>>
> = {
  '/report': (service, order: ReportOrder, signal) => answerReport(service, order, signal),
  '/preview': (service, order: PreviewOrder, signal) => answerPreview(service, promptStore, order, signal),
  '/explanation': (service, order: ExplanationOrder, signal) =>
    answerExplanation(service, promptStore, order, signal),
  '/evaluation': (service, order: EvaluationOrder, signal) =>
    evaluateSegment(service, promptStore, order, signal),
};

const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const number = Number(request.headers[ORDER_HEADER]);
  const ended = (): void => send({ kind: 'order_ended', order: number });
  let using = Promise.resolve();
  const onUse = (use: Promise<unknown>): void => {
    using = use.then(ended, ended);
    uses.add(using);
    void using.then(() => uses.delete(using));
  };
  send({ kind: 'order_begun', order: number });
  try {
    const left = new AbortController();
    response.on('close', () => left.abort());
    const order = (await json(request)) as Order;
    // Its client left before it arrived.
    if (number <= lastClosedOrder) return void response.destroy();
    const answer = jsonOrders[request.url!];
    const service = serviceFor(order, number, onUse);
    if (answer === undefined) {
      const refusal = await answerSql(service, order as SqlOrder, response);
      if (refusal !== null) refuse(response, refusal);
      return;
    }
    const answered = await answer(service, order as never, left.signal);
    if ('kind' in answered) refuse(response, answered as OrderRefusal);
    else response.end(JSON.stringify(answered));
  } finally {
    // The order may not have used the replica. An evaluation may leave a query that is still being stopped.
    void using.then(ended);
  }
};

const refuse = (response: ServerResponse, refusal: OrderRefusal): void => {
  if (response.headersSent) response.destroy();
  else response.writeHead(REFUSED_STATUS).end(JSON.stringify(refusal));
};

const failed: OrderRefusal = {
  kind: 'unavailable',
  message: 'The query failed unexpectedly; the operator can find the reason in the log.',
  position: null,
};

const server = createServer((request, response) => {
  serve(request, response).catch((error: Error) => {
    // The client left before it had sent its order.
    if (!request.complete) return;
    const isUnresponsive = error instanceof StoreUnavailable;
    report(isUnresponsive ? error.message : (error.stack ?? error.message));
    refuse(response, isUnresponsive ? storeUnresponsive : failed);
  });
});
server.requestTimeout = 0;
rmSync(socket, { force: true });
server.once('error', (error) => endWithReason('the process that runs queries cannot be reached', error));
server.listen(socket, () => {
  send({ kind: 'ready' });
  const sendMemory = (): void => send({ kind: 'memory', usedBytes: process.memoryUsage.rss() });
  sendMemory();
  setInterval(sendMemory, SEND_MEMORY_EVERY_MS);
  // Otherwise Node stores compiled modules only if the process exits normally.
  flushCompileCache();
});
