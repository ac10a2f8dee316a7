// Measures the response times of one organisation (the neighbour) while another one attacks. The server, the attacker
// and the neighbour each have a process of their own.

import { setTimeout as sleep } from 'node:timers/promises';
import { issueKey } from '../../../server/access/keys.ts';
import { createOrganisation } from '../../../server/access/organisations.ts';
import { defaultScopes } from '../../../server/access/scopes.ts';
import { openStore } from '../../../server/store/open-store.ts';
import type { Store } from '../../../server/store/store.ts';
import { recordRow } from '../../../server/store/test-rows.ts';
import { type Headgate, startHeadgate } from '../headgate.ts';
import { scrape } from '../observed.ts';
import { type PreparedChild, prepareChild } from '../prepared-child.ts';
import { residentMemory } from '../resident-memory.ts';
import type { AttackOrder, AttackResult } from './attacker.ts';
import type { Attack, Scale } from './attacks.ts';
import { type Kind, kinds, type NeighbourOrder, type NeighbourResult } from './neighbour.ts';

export const CONNECTIONS = 16;
const KEYS_OF_ATTACKER = 2;
const SHOPS_OF_NEIGHBOUR = 1000;
/** How long the attack begins before the neighbour is measured, and ends after it. */
const MARGIN_MS = 200;
const SAMPLE_MEMORY_EVERY_MS = 100;
/** A server that takes more has failed, and is killed before the machine runs out of memory. */
const MOST_MEMORY_MB = 2000;
const METRICS_TIMEOUT_MS = 5000;

export interface GroundOrder {
  readonly database: string;
  /** The attacks whose rows the database gets. */
  readonly attacks: readonly Attack[];
  readonly scale: Scale;
  /** The descriptor that the server logs to. Reading the log in this process would use CPU and distort the figures. */
  readonly logTo: number;
}

export interface Times {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly longestMs: number;
}

export interface Measured {
  readonly times: Readonly<Record<Kind, Times>>;
  /** How many requests the neighbour made. */
  readonly requests: number;
  /** Requests of the neighbour without status 200, threads that ended, and the end of the server. */
  readonly failures: readonly string[];
  /** The most memory that the server has used since its start. */
  readonly peakMb: number;
  /** How late the neighbour's process was woken at the 99th percentile: the delay that the machine alone adds. */
  readonly ownP99Ms: number;
  readonly attacker: AttackResult | null;
}

/** A running server with both organisations. */
export interface Ground {
  /** Null measures the neighbour alone. */
  measure(attack: Attack | null, durationMs: number): Promise<Measured>;
  /** False once an attack has ended the server. */
  isRunning(): boolean;
  close(): Promise<void>;
}

interface Furnished {
  readonly attackerKeys: readonly string[];
  readonly attackerShopId: string;
  readonly neighbourKey: string;
  readonly neighbourShopIds: readonly string[];
}

export async function openGround(order: GroundOrder): Promise<Ground> {
  const furnished = await furnish(order);
  // An empty text means the default limit.
  const environment = { HEADGATE_RATE_LIMIT: '', HEADGATE_METRICS_PORT: '0' };
  const headgate = await startHeadgate(order.database, environment, order.logTo);
  const killAtExit = (): void => void headgate.process.kill('SIGKILL');
  process.once('exit', killAtExit);
  return {
    measure: (attack, durationMs) => measureOn(headgate, furnished, attack, durationMs),
    isRunning: () => !hasEnded(headgate),
    async close() {
      await headgate.kill();
      process.removeListener('exit', killAtExit);
    },
  };
}

async function measureOn(
  headgate: Headgate,
  furnished: Furnished,
  attack: Attack | null,
  durationMs: number,
): Promise<Measured> {
  await using cleanUp = new AsyncDisposableStack();
  const preparing = [
    prepareNeighbour(headgate, furnished, durationMs),
    attack && prepareAttacker(headgate, furnished, attack, durationMs + 2 * MARGIN_MS),
  ] as const;
  cleanUp.defer(async () => {
    for (const child of preparing) (await child?.catch(() => null))?.end();
  });
  const [neighbour, attacker] = await Promise.all(preparing);
  const restartsBefore = await restartsOf(headgate);
  const watch = new MemoryWatch(headgate);
  const attacking = attacker?.run() ?? null;
  await sleep(MARGIN_MS);
  const { timesMs, failures, ownP99Ms } = await neighbour.run();
  const attackerResult = await attacking;
  const restarts = await restartsOf(headgate);
  return {
    times: Object.fromEntries(kinds.map((kind) => [kind, timesOf(timesMs[kind])])) as Record<Kind, Times>,
    requests: kinds.reduce((sum, kind) => sum + timesMs[kind].length, 0),
    failures: [...failures, ...restarts.filter((restart) => !restartsBefore.includes(restart))],
    peakMb: await watch.peakMb(),
    ownP99Ms,
    attacker: attackerResult,
  };
}

function prepareNeighbour(
  { url }: Headgate,
  { neighbourKey, neighbourShopIds }: Furnished,
  durationMs: number,
): Promise<PreparedChild<NeighbourResult>> {
  const script = new URL('./neighbour.ts', import.meta.url);
  return prepareChild<NeighbourOrder, NeighbourResult>(script, {
    url,
    key: neighbourKey,
    shopIds: neighbourShopIds,
    durationMs,
  });
}

function prepareAttacker(
  { url }: Headgate,
  { attackerKeys, attackerShopId }: Furnished,
  { name }: Attack,
  durationMs: number,
): Promise<PreparedChild<AttackResult>> {
  const script = new URL('./attacker.ts', import.meta.url);
  return prepareChild<AttackOrder, AttackResult>(script, {
    attack: name,
    target: { port: Number(new URL(url).port), keys: attackerKeys, shopId: attackerShopId },
    connections: CONNECTIONS,
    durationMs,
  });
}

/** Samples the memory regularly, because the figures are gone once a process has ended. */
class MemoryWatch {
  readonly #headgate: Headgate;
  readonly #timer: NodeJS.Timeout;
  #peakMb = 0;

  constructor(headgate: Headgate) {
    this.#headgate = headgate;
    this.#timer = setInterval(() => void this.#look(), SAMPLE_MEMORY_EVERY_MS);
  }

  async #look(): Promise<void> {
    const memory = await residentMemory(this.#headgate.process.pid!);
    if (memory === null) return;
    this.#peakMb = memory.peakMb;
    if (this.#peakMb > MOST_MEMORY_MB) await this.#headgate.kill();
  }

  async peakMb(): Promise<number> {
    clearInterval(this.#timer);
    await this.#look();
    return this.#peakMb;
  }
}

/** Creates two organisations: one with several keys and the rows for its attacks, one with shops. */
async function furnish({ database, attacks, scale }: GroundOrder): Promise<Furnished> {
  const store = await openStore(database);
  try {
    const attacker = await newOrganisation(store, 'attacker', KEYS_OF_ATTACKER);
    const neighbour = await newOrganisation(store, 'neighbour', 1);
    const [attackerShopId] = await writeShops(store, attacker.organisation, 1);
    for (const write of new Set(attacks.map(({ furnish }) => furnish))) {
      await write?.(store, attacker.organisation, scale);
    }
    return {
      attackerKeys: attacker.keys,
      attackerShopId: attackerShopId!,
      neighbourKey: neighbour.keys[0]!,
      neighbourShopIds: await writeShops(store, neighbour.organisation, SHOPS_OF_NEIGHBOUR),
    };
  } finally {
    await store.close();
  }
}

async function newOrganisation(
  store: Store,
  name: string,
  keyCount: number,
): Promise<{ organisation: number; keys: readonly string[] }> {
  const nowMs = Date.now();
  const created = await createOrganisation(store, name, nowMs);
  if (created.kind !== 'created') throw new Error(`the organisation ${name} exists already`);
  const { organisation, orgId } = created.organisation;
  const keys: string[] = [];
  while (keys.length < keyCount) {
    const wish = { organisation, orgId, scopes: defaultScopes, name, expiresAtMs: null, nowMs };
    keys.push((await issueKey(store, wish)).apiKey);
  }
  return { organisation, keys };
}

async function writeShops(store: Store, organisation: number, count: number): Promise<readonly string[]> {
  const rows = Array.from({ length: count }, () => recordRow('shops'));
  await store.write({ organisation, type: 'shops', batches: [rows], idempotencyRecord: null, entry: null });
  return rows.map(([id]) => String(id));
}

function timesOf(timesMs: readonly number[]): Times {
  const sorted = timesMs.toSorted((one, other) => one - other);
  const percentileMs = (share: number): number => sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN;
  return { p50Ms: percentileMs(0.5), p99Ms: percentileMs(0.99), longestMs: percentileMs(1) };
}

/** Returns the threads that were restarted, and how often; or why this is unknown. */
async function restartsOf(headgate: Headgate): Promise<string[]> {
  const { exitCode, signalCode } = headgate.process;
  if (hasEnded(headgate)) return [`the server ended with ${exitCode ?? signalCode}`];
  try {
    const samples = await scrape(headgate, METRICS_TIMEOUT_MS);
    return [...samples]
      .filter(([series, value]) => series.startsWith('headgate_thread_restarts_total') && value > 0)
      .map(([series, value]) => `${series} ${value}`);
  } catch (error) {
    return [`the server does not serve its metrics: ${(error as Error).message}`];
  }
}

function hasEnded({ process: { exitCode, signalCode } }: Headgate): boolean {
  return exitCode !== null || signalCode !== null;
}

/** One line for people. */
export function measuredInWords({ times, peakMb, ownP99Ms, attacker, failures }: Measured): string {
  const rounded = (ms: number): string => String(Math.round(ms));
  const parts = kinds.map((kind) => {
    const { p50Ms, p99Ms, longestMs } = times[kind];
    return `${kind} ${[p50Ms, p99Ms, longestMs].map(rounded).join('/')}`;
  });
  const answers = Object.entries(attacker?.answers ?? {}).map(([status, count]) => `${count} × ${status}`);
  return [
    `${parts.join(', ')} ms (p50/p99/max)`,
    `peak ${rounded(peakMb)} MB`,
    `its own process woken ${rounded(ownP99Ms)} ms late`,
    ...(attacker === null
      ? []
      : [`attacker: ${answers.join(', ') || 'no answer'} on ${attacker.connections} connections`]),
    ...(failures.length === 0
      ? []
      : [`${failures.length} failed, such as ${[...new Set(failures)].slice(0, 2).join('; ')}`]),
  ].join('; ');
}
