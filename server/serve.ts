// Connects all parts of the server: opens the store, starts the threads, and serves until it is closed.

import type { AddressInfo } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import type { FastifyListenOptions } from 'fastify';
import { Gatekeeper } from './access/gatekeeper.ts';
import { issueKey } from './access/keys.ts';
import { createOrganisation } from './access/organisations.ts';
import { rateLimiter } from './access/rate-limit.ts';
import { defaultScopes } from './access/scopes.ts';
import { AnalyticsLink } from './analytics/analytics-link.ts';
import { evaluateRegularly } from './analytics/segment-schedule.ts';
import { Failure } from './failure.ts';
import { buildApp } from './http/app.ts';
import { InFlight } from './http/body/in-flight-bytes.ts';
import { Followers } from './http/followers.ts';
import { IngestPool } from './http/ingest-pool.ts';
import { shownRoute } from './http/request-observation.ts';
import { routes } from './http/routes.ts';
import { listSlots, lookUpSlots, sqlSlots, uploadSlots, WorkSlots } from './http/work-slots.ts';
import { type Log, type LogFields, openLog } from './observe/log.ts';
import type { Metrics } from './observe/metrics.ts';
import { Observer } from './observe/observer.ts';
import { openTraces } from './observe/traces.ts';
import { openToOthers } from './private-files.ts';
import { isLoopback, type Settings } from './settings.ts';
import { shellWord } from './shell-word.ts';
import { isPostgres, readDatabaseLocation } from './store/database-location.ts';
import type { LedgerSize } from './store/ledger.ts';
import { type OpenedStore, openStore } from './store/open-store.ts';
import { withSharedSegmentReads } from './store/shared-segment-reads.ts';
import { filesOfDatabase } from './store/sqlite/database-files.ts';
import { prepareThreadMemory } from './thread-memory.ts';
import type { TlsPair } from './tls.ts';

const DELETE_EXPIRED_EVERY_MS = 3_600_000;
const LEDGER_SIZE_EVERY_MS = 60_000;
const DEMO_ORGANISATION = 'demo';
/** The folder of the replicas of a PostgreSQL database is in this one, unless a setting names another. */
const DATA_FOLDER = 'data';
const MEBIBYTE = 1024 ** 2;
/**
 * The most new connections that wait to be accepted. The operating system drops further connections, and their clients
 * try again after one second.
 */
const BACKLOG_CONNECTIONS = 4096;

export interface ServeContext {
  /** Prints a line for the person or program that started the server. */
  out(line: string): void;
  readonly version: string;
  /** True if standard error, where the log is written, is a terminal. */
  readonly isTerminal: boolean;
  /** The environment, for variables that are not settings of Headgate: those of OpenTelemetry, NO_COLOR and TERM. */
  readonly env: { readonly [name: string]: string | undefined };
  /** True if this is one of several processes that serve the port together. */
  readonly isWorker: boolean;
  readonly listenOptions: FastifyListenOptions;
}

export interface RunningServer {
  readonly url: string;
  /** Finishes the requests in flight, then stops the server. */
  close(): Promise<void>;
}

export async function startServer(
  settings: Settings,
  tls: TlsPair | null,
  { out, version, isTerminal, env, isWorker, listenOptions }: ServeContext,
): Promise<RunningServer> {
  // Closes what was opened, the last first: when the server is stopped, or if it cannot be started.
  await using opened = new AsyncDisposableStack();
  const { database, host, logFormat: format, logLevel: threshold, maxBodyBytes, metricsPort } = settings;
  const log = openLog({ threshold, format, isTerminal, isShared: isWorker, env });
  opened.defer(() => log.close());
  const warn = (fields: LogFields, message: string): void => log.write('warn', fields, message);
  const traces = await openTraces({ version, env, isTls: tls !== null, warn });
  opened.defer(() => traces?.close());
  prepareThreadMemory();
  const store = await openStore(database, (trouble) => log.write('error', {}, trouble));
  opened.defer(() => store.close());
  warnIfOpenToOthers(settings, log);
  const metrics = metricsPort === null ? null : await openMetrics(settings, version);
  opened.defer(() => metrics?.close());
  const observer = new Observer(log, traces, metrics);
  const gatekeeper = new Gatekeeper(store, (err) => {
    metrics?.storeFailed('upkeep');
    warn({ err }, 'last-used times of keys could not be written; trying again');
  });
  opened.defer(() => gatekeeper.close());
  const ingest = new IngestPool(store, {
    limits: settings,
    maxBodyBytes,
    isTraced: traces !== null,
    onDeath(thread, err) {
      metrics?.threadRestarted(thread);
      const message = `the thread for ${thread} requests ended unexpectedly and is started again`;
      log.write('error', { err }, message);
    },
  });
  opened.defer(() => ingest.close());
  const inFlight = new InFlight(settings.maxInFlightBytes, maxBodyBytes);
  const followers = new Followers(store);
  opened.defer(
    deleteExpiredRegularly(store, settings, (err) => {
      metrics?.storeFailed('upkeep');
      warn({ err }, 'expired idempotency records, ledger entries or members could not be deleted');
    }),
  );
  if (metrics !== null) {
    metrics.watch('requestsInProgress', () => observer.requestsInProgress);
    metrics.watch('bodiesWaiting', () => inFlight.turns.waiting);
    metrics.watch('bytesInFlight', () => inFlight.bytes);
    metrics.watch('bytesInFlightLimit', () => inFlight.limitBytes);
    metrics.watch('followersWaiting', () => followers.waiting);
    opened.defer(watchLedgerSize(store, metrics));
    metrics.watchThreads('jobs', (thread) => ingest.jobsAt(thread));
    metrics.watchThreads('writes', (thread) => ingest.writesOf(thread));
    if (isWorker) {
      // The primary adds up the metrics of all workers.
      const { sendMetrics } = await import('./observe/merged-metrics.ts');
      opened.defer(sendMetrics(() => metrics.values()));
    } else {
      const { serveMetrics } = await import('./observe/metrics-server.ts');
      opened.defer(await serveMetrics(settings.metricsHost, metricsPort!, () => metrics.text(), out));
    }
  }
  const analytics = analyticsLink(settings, log);
  opened.defer(() => analytics?.close());
  if (analytics !== null) {
    opened.defer(
      evaluateRegularly(store, analytics, settings, (err) => {
        log.write('error', { err }, 'the segments could not be evaluated; they will be tried again');
      }),
    );
  }
  const app = buildApp({
    store: withSharedSegmentReads(store),
    gatekeeper,
    rateLimiter: rateLimiter(settings.rateLimitPerSecond),
    ingest,
    inFlight,
    workSlots: new WorkSlots(uploadSlots),
    listSlots: new WorkSlots(listSlots),
    lookUpSlots: new WorkSlots(lookUpSlots),
    sqlSlots: new WorkSlots(sqlSlots),
    followers,
    analytics,
    sqlLimits: settings,
    maxConnections: settings.maxConnections,
    stallTimeoutMs: settings.stallTimeoutMs,
    maxBodyBytes,
    limits: settings,
    tls,
    behindProxy: settings.behindProxy,
    allowedOrigins: settings.allowedOrigins,
    shutdownTimeoutMs: settings.shutdownTimeoutMs,
    observer,
    log: log.write,
  });
  await app.listen({ ...listenOptions, backlog: BACKLOG_CONNECTIONS });
  opened.defer(() => app.close());
  const url = urlOf(app.server.address() as AddressInfo, host, tls !== null);
  await greetNewcomer(store, settings, url, out);
  log.write('debug', { version, url }, 'started');
  const running = opened.move();
  return { url, close: () => running.disposeAsync() };
}

/**
 * Warns if other users of the machine have access to the database. Does not change the modes of the files, because that
 * is their owner's decision, and backups may depend on the modes.
 */
function warnIfOpenToOthers({ database }: Settings, log: Log): void {
  const place = readDatabaseLocation(database);
  if (place instanceof Failure || place.kind === 'postgres') return;
  const files = openToOthers(filesOfDatabase(place.path));
  if (files.length === 0) return;
  const command = `chmod 600 ${files.map(shellWord).join(' ')}`;
  log.write('warn', {}, `the database is open to other users of this machine; to close it, run ${command}`);
}

const ANALYTICS_IDLE_MS = 5 * 60_000;

/** Returns the link to the analytics process, which is started when the first query arrives. */
function analyticsLink(settings: Settings, log: Log): AnalyticsLink | null {
  const { analytics, analyticsDir, analyticsMemoryBytes, database } = settings;
  if (analytics === 'off') return null;
  const place = readDatabaseLocation(database);
  const data = place instanceof Failure || place.kind === 'postgres' ? DATA_FOLDER : dirname(place.path);
  const setup = {
    database: place instanceof Failure || place.kind === 'postgres' ? database : resolve(place.path),
    folder: resolve(analyticsDir ?? join(data, 'analytics')),
    memoryMb: Math.floor(analyticsMemoryBytes / MEBIBYTE),
    idleMs: ANALYTICS_IDLE_MS,
  };
  return new AnalyticsLink(setup, (message) => log.write('warn', {}, `analytics: ${message}`));
}

/** The modules for metrics are loaded only if metrics are on. */
async function openMetrics({ database }: Settings, version: string): Promise<Metrics> {
  const { Metrics } = await import('./observe/metrics.ts');
  const shown = Object.values(routes).map(({ method, path }) => ({ method, route: shownRoute(path) }));
  return new Metrics(shown, { version, store: isPostgres(database) ? 'postgres' : 'sqlite' });
}

/** Deletes what has expired, now and regularly. Returns a function that ends this. */
function deleteExpiredRegularly(
  store: OpenedStore,
  { changesKeepMs, uploadsKeepMs }: Settings,
  onError: (error: unknown) => void,
): () => void {
  let isStopped = false;
  // What the closing of the store interrupts is done after the next start.
  const failed = (error: unknown): void => {
    if (!isStopped) onError(error);
  };
  const forget = (): void => {
    const nowMs = Date.now();
    store.deleteExpiredResponses(nowMs).catch(failed);
    store.expireLedgers(nowMs - changesKeepMs, nowMs - uploadsKeepMs).catch(failed);
    store.expireMemberships(nowMs - changesKeepMs).catch(failed);
  };
  forget();
  const timer = setInterval(forget, DELETE_EXPIRED_EVERY_MS).unref();
  return () => {
    isStopped = true;
    clearInterval(timer);
  };
}

/** Reads the size of the ledgers from time to time, so that a scrape does not wait for the store. */
function watchLedgerSize(store: OpenedStore, metrics: Metrics): () => void {
  let size: LedgerSize = { entries: 0, ids: 0 };
  const read = async (): Promise<void> => {
    try {
      size = await store.ledgerSize();
    } catch {
      metrics.storeFailed('upkeep');
    }
  };
  metrics.watch('ledgerEntries', () => size.entries);
  metrics.watch('ledgerIds', () => size.ids);
  void read();
  const timer = setInterval(read, LEDGER_SIZE_EVERY_MS).unref();
  return () => clearInterval(timer);
}

function urlOf({ port }: AddressInfo, host: string, isTls: boolean): string {
  const shownHost = host.includes(':') ? `[${host}]` : host;
  return `${isTls ? 'https' : 'http'}://${shownHost}:${port}`;
}

/**
 * If the database has no organisation and only this machine can reach the server, creates a demo organisation, and
 * prints a key for it and a first command.
 */
async function greetNewcomer(
  store: OpenedStore,
  { host }: Settings,
  url: string,
  out: (line: string) => void,
): Promise<void> {
  if (!isLoopback(host) || (await store.organisations()).length > 0) return;
  const nowMs = Date.now();
  const created = await createOrganisation(store, DEMO_ORGANISATION, nowMs);
  // If another server on the same new database was faster, that server prints the greeting.
  if (created.kind !== 'created') return;
  const { organisation, orgId } = created.organisation;
  const name = 'first key';
  const wish = { organisation, orgId, scopes: defaultScopes, name, expiresAtMs: null, nowMs };
  const { apiKey } = await issueKey(store, wish);
  out(`This database is new. The organisation "${DEMO_ORGANISATION}" has this key; it is shown only now:`);
  out('');
  out(`  ${apiKey}`);
  out('');
  out('Upload a first record with it:');
  out('');
  out(`  curl ${url.startsWith('https') ? '-k ' : ''}${url}/v1/data/shops \\`);
  out(`    -H 'Authorization: Bearer ${apiKey}' \\`);
  out("    -H 'Content-Type: application/json' \\");
  out(
    `    -d '{"records":[{"shop_id":"8d7ce2ca-5c5b-4ef6-9b1e-3b7d9a0f4c11","name":"Corner Books","region":"GB"}]}'`,
  );
  out('');
  out(`Documentation: ${url}${routes.reference.path}`);
  out('');
}
