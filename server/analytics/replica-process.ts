// A replica process. It opens the replica of one organisation at a time and runs queries on it, so a query that ends the
// process harms no other organisation.

import './load-failure.ts';
import { rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { flushCompileCache } from 'node:module';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { keepNewFilesPrivate } from '../private-files.ts';
import { openStore } from '../store/open-store.ts';
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
import { endWithReason, failToLoad } from './load-failure.ts';
import { withPromptReads } from './prompt-reads.ts';
import { Replica } from './replica.ts';
import {
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

const TELL_MEMORY_EVERY_MS = 100;

keepNewFilesPrivate();
const setup = JSON.parse(process.env[REPLICA_SETUP_VARIABLE]!) as ReplicaProcessSetup;
delete process.env[REPLICA_SETUP_VARIABLE];
const { database, folder, socket, options } = setup;
const report = (message: string): void => void process.stderr.write(`${message}\n`);
const tell = (message: FromReplicaProcess): void => {
  // If the analytics process has ended, this process is about to end, too.
  if (process.connected) process.send!(message, () => {});
};

let opened: { readonly orgId: string; readonly replica: Replica } | null = null;
let placeWanted = new AbortController();
let firstOrder = 1;

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
const store = await openStore(database, report).catch((error: Error) =>
  endWithReason('the store cannot be opened', error),
);
const promptStore = withPromptReads(store, CATCH_UP_MS);

let lastQuery = 0;
const planned = new Map<number, (refusal: OrderRefusal | null) => void>();
const checks = new QueryChecks(
  (sql, parameters) =>
    new Promise((resolve) => {
      planned.set(++lastQuery, resolve);
      tell({ kind: 'plan', query: lastQuery, sql, parameters });
    }),
);

process.on('message', (message: ToReplicaProcess) => {
  switch (message.kind) {
    case 'place_wanted':
      placeWanted.abort();
      break;
    case 'close':
      void close(message.beforeOrder);
      break;
    case 'planned':
      planned.get(message.query)?.(message.refusal);
      planned.delete(message.query);
  }
});

async function close(beforeOrder: number): Promise<void> {
  firstOrder = beforeOrder;
  const closing = opened;
  await closing?.replica.close();
  opened = null;
  placeWanted = new AbortController();
  tell({ kind: 'closed' });
}

/** Returns the replica of the order's organisation. The process has only that one until it is told to close it. */
function replicaOf({ organisation, orgId }: Order): Replica {
  if (opened === null) {
    const path = join(folder, `${orgId}.duckdb`);
    // DuckDB's temporary files have the same names in every database, so each needs its own folder.
    const temporaryFolder = join(options.temporaryFolder, orgId);
    const reportOf = (message: string): void =>
      report(`organisation ${orgId}: ${message.replaceAll('\n', ' ')}`);
    const replica = new Replica(path, { ...options, temporaryFolder }, promptStore, organisation, reportOf);
    opened = { orgId, replica };
  }
  if (opened.orgId !== orgId) throw new Error('this process has the replica of another organisation');
  return opened.replica;
}

/** What an order needs. */
const serviceFor = (order: Order, onUse: (use: Promise<unknown>) => void) => ({
  checks,
  replica: replicaOf(order),
  placeWanted: placeWanted.signal,
  exportFolder: options.exportFolder,
  folder,
  onUse,
  onStuck: () => tell({ kind: 'stuck' }),
  onUnusable: (reason: string) => tell({ kind: 'unusable', orgId: order.orgId, reason }),
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
  let using: Promise<unknown> = Promise.resolve();
  const onUse = (use: Promise<unknown>): void => {
    using = use.finally(() => tell({ kind: 'order_ended', order: number }));
  };
  tell({ kind: 'order_begun', order: number });
  try {
    const left = new AbortController();
    response.on('close', () => left.abort());
    const order = (await json(request)) as Order;
    // Its client left before it arrived.
    if (number < firstOrder) return void response.destroy();
    const answer = jsonOrders[request.url!];
    const service = serviceFor(order, onUse);
    if (answer === undefined) {
      const refusal = await answerSql(service, order as SqlOrder, response);
      if (refusal !== null) refuse(response, refusal);
      return;
    }
    const answered = await answer(service, order as never, left.signal);
    if ('kind' in answered) refuse(response, answered as OrderRefusal);
    else response.end(JSON.stringify(answered));
  } finally {
    // An evaluation that was ended may leave a query that is still being stopped.
    void using.finally(() => tell({ kind: 'order_ended', order: number }));
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
  tell({ kind: 'ready' });
  const tellMemory = (): void => tell({ kind: 'memory', usedBytes: process.memoryUsage.rss() });
  tellMemory();
  setInterval(tellMemory, TELL_MEMORY_EVERY_MS);
  // Otherwise Node stores compiled modules only if the process exits normally.
  flushCompileCache();
});
