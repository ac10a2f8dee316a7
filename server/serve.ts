// The wiring: opens the store, starts the threads, and serves until told to stop.

import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { Gatekeeper } from './access/gatekeeper.ts';
import { issueKey } from './access/keys.ts';
import { createOrganisation } from './access/organisations.ts';
import { rateLimiter } from './access/rate-limit.ts';
import { defaultScopes } from './access/scopes.ts';
import { buildApp } from './http/app.ts';
import { IngestClient } from './http/ingest-client.ts';
import { InteractionClient } from './http/interaction-client.ts';
import { InFlight } from './http/read-body.ts';
import type { Service } from './http/service.ts';
import { isLoopback, type Settings } from './settings.ts';
import { type OpenedStore, openStore } from './store/open-store.ts';
import type { TlsPair } from './tls.ts';

const FORGET_EXPIRED_EVERY_MS = 3_600_000;
const DEMO_ORGANISATION = 'demo';

export interface ServeOutput {
  /** Prints a line for the person or program that started the server. */
  out(line: string): void;
  readonly version: string;
}

export interface RunningServer {
  readonly url: string;
  /** Finishes what is in flight, then ends. */
  close(): Promise<void>;
}

export async function startServer(
  settings: Settings,
  tls: TlsPair | null,
  io: ServeOutput,
): Promise<RunningServer> {
  const log = pino({ level: settings.logLevel, base: null }, pino.destination({ fd: 2, sync: true }));
  const store = await openStore(settings.database);
  const gatekeeper = new Gatekeeper(store, {
    onError: (err) => log.warn({ err }, 'last-used times of keys could not be written; trying again'),
  });
  const ingest = new IngestClient(store, settings, settings.maxBodyBytes, (err) =>
    log.error({ err }, 'the ingest thread ended unexpectedly and is started again'),
  );
  const interactions = new InteractionClient(store, (err) =>
    log.error({ err }, 'the interaction thread ended unexpectedly and is started again'),
  );
  const service: Service = {
    store,
    gatekeeper,
    rateLimiter: rateLimiter(settings.rateLimitPerSecond),
    ingest,
    interactions,
    inFlight: new InFlight(settings.maxInFlightBytes, settings.maxBodyBytes),
    maxBodyBytes: settings.maxBodyBytes,
    tls,
    behindProxy: settings.behindProxy,
    log: (level, facts, message) => log[level](facts, message),
  };
  const forgetting = forgetExpiredRegularly(store, (err) =>
    log.warn({ err }, 'expired answers were not dropped'),
  );
  const close = async (): Promise<void> => {
    clearInterval(forgetting);
    await gatekeeper.close();
    await ingest.close();
    await interactions.close();
    await store.close();
  };
  try {
    const app = buildApp(service);
    await app.listen({ host: settings.host, port: settings.port });
    const url = urlOf(app.server.address() as AddressInfo, settings.host, tls !== null);
    await greetNewcomer(store, settings, url, io);
    log.debug({ version: io.version, url }, 'started');
    return {
      url,
      async close() {
        await app.close();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function forgetExpiredRegularly(store: OpenedStore, onError: (error: unknown) => void): NodeJS.Timeout {
  const forget = (): void => {
    store.forgetExpired(Date.now()).catch(onError);
  };
  forget();
  return setInterval(forget, FORGET_EXPIRED_EVERY_MS).unref();
}

function urlOf({ port }: AddressInfo, host: string, isTls: boolean): string {
  const shownHost = host.includes(':') ? `[${host}]` : host;
  return `${isTls ? 'https' : 'http'}://${shownHost}:${port}`;
}

/** On an empty database that only this machine can reach: something to try, at once. */
async function greetNewcomer(
  store: OpenedStore,
  { host }: Settings,
  url: string,
  { out }: ServeOutput,
): Promise<void> {
  if (!isLoopback(host) || (await store.organisations()).length > 0) return;
  const nowMs = Date.now();
  const created = await createOrganisation(store, DEMO_ORGANISATION, nowMs);
  // Another server on the same new database was a moment faster and greets instead.
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
}
