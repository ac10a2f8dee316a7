// The open replicas of all organisations. Few are open at once, because each may use its share of the memory. One that
// nobody uses is closed after a while, or as soon as another organisation needs its place. If all are used, the one that
// was opened first gets no further queries, so that another organisation gets its place when its queries have ended. All
// suspects of a crash share one place, so that two of them hardly ever run queries at once.

import { join } from 'node:path';
import type { OrganisationNumber } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { CrashSuspects } from './crash-suspects.ts';
import type { ReplicaDatabaseOptions } from './duckdb.ts';
import type { MemoryTakers } from './memory-takers.ts';
import { Replica } from './replica.ts';

export const MOST_OPEN_REPLICAS = 4;
const CLOSED_AFTER_MS = 60_000;
const SAME_REFUSAL_MS = 60_000;
/** At most this many reasons of an organisation are reported in a minute, so that nobody can fill the log. */
const MOST_REFUSALS = 10;
/** Longer than a query may take by default, so that whoever waits gets a place when the running queries have ended. */
const LONGEST_WAIT_MS = 45_000;
/** After this time, a suspect gets a place of its own, so that the culprit cannot make it wait for all its queries. */
const LONGEST_WAIT_FOR_SUSPECTS_MS = 5000;
/** The queries of one organisation that run at once, from all servers together. */
const MOST_USERS = 4;

interface Place {
  readonly orgId: string;
  readonly replica: Replica;
  users: number;
  usedAtMs: number;
  closed: Promise<void> | null;
  /** Aborted when another organisation waits for the place. */
  readonly wanted: AbortController;
}

/** Thrown if all replicas, or all slots of the organisation's own one, are in use for too long. */
export class ReplicasBusy extends Error {}

export class Replicas {
  readonly #store: Store;
  readonly #folder: string;
  readonly #options: ReplicaDatabaseOptions;
  readonly #suspects: CrashSuspects;
  readonly #memoryTakers: MemoryTakers;
  readonly #report: (message: string) => void;
  readonly #places = new Set<Place>();
  readonly #waiting = new Set<() => void>();
  /** The reasons that were reported in the last minute, and when. */
  readonly #refusals = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;

  constructor(
    store: Store,
    folder: string,
    options: ReplicaDatabaseOptions,
    suspects: CrashSuspects,
    memoryTakers: MemoryTakers,
    report: (message: string) => void,
  ) {
    this.#store = store;
    this.#folder = folder;
    this.#options = options;
    this.#suspects = suspects;
    this.#memoryTakers = memoryTakers;
    this.#report = report;
    this.#timer = setInterval(
      () => this.#closeUnused(this.#places, CLOSED_AFTER_MS),
      CLOSED_AFTER_MS / 4,
    ).unref();
  }

  /**
   * Calls `use` with the organisation's replica, which stays open until `use` has finished. The signal says that another
   * organisation waits for that. Throws an AnalyticsPaused if the organisation's queries have ended the process, and a
   * ReplicasBusy if all places are taken for too long or the client leaves meanwhile.
   */
  async with<Result>(
    organisation: OrganisationNumber,
    orgId: string,
    left: AbortSignal,
    use: (replica: Replica, wanted: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    this.#suspects.refusePaused(orgId);
    const place = await this.#enter(organisation, orgId, left);
    this.#suspects.mark(orgId);
    const ended = this.#memoryTakers.begin(orgId);
    try {
      return await use(place.replica, place.wanted.signal);
    } finally {
      // A replica that is still being built takes memory, too.
      void place.replica.settled().then(ended);
      place.users--;
      if (place.users === 0) void this.#unmarkOnceSettled(place);
      place.usedAtMs = performance.now();
      if (place.users === 0 && place.wanted.signal.aborted) this.#close(place);
      for (const retry of this.#waiting) retry();
    }
  }

  /** Call this just before the process ends because of the queries of some organisations, and not because of a file. */
  trustFilesOfOthers(orgIds: ReadonlySet<string>): void {
    for (const { orgId, replica } of this.#places) if (!orgIds.has(orgId)) replica.trustFile();
  }

  /** Reports why a query was refused, but the same reason at most once a minute, because clients try again and again. */
  reportRefusal(orgId: string, reason: string): void {
    const nowMs = performance.now();
    for (const [refusal, atMs] of this.#refusals) {
      if (nowMs - atMs >= SAME_REFUSAL_MS) this.#refusals.delete(refusal);
    }
    // Some reasons contain the number of a block or the name of a new file, which consists of hexadecimal digits.
    const refusal = `${orgId} ${reason.replaceAll(/[\da-f]/gi, '')}`;
    const reported = [...this.#refusals.keys()].filter((other) => other.startsWith(`${orgId} `));
    if (reported.includes(refusal) || reported.length >= MOST_REFUSALS) return;
    this.#refusals.set(refusal, nowMs);
    this.#reportOf(orgId, `a query was refused, because the replica cannot be used: ${reason}`);
  }

  /** Returns a message for an organisation, which must not see the paths of this machine. */
  withoutFolder(message: string): string {
    return message.replaceAll(this.#folder, 'HEADGATE_ANALYTICS_DIR');
  }

  /** Every line of the log says whose replica it is about. */
  #reportOf(orgId: string, message: string): void {
    this.#report(`organisation ${orgId}: ${message.replaceAll('\n', ' ')}`);
  }

  /** A replica that is still being built can end the process, too. */
  async #unmarkOnceSettled(place: Place): Promise<void> {
    await place.replica.settled();
    if (place.users === 0) this.#suspects.unmark(place.orgId);
  }

  async #enter(organisation: OrganisationNumber, orgId: string, left: AbortSignal): Promise<Place> {
    const beganAtMs = performance.now();
    for (;;) {
      const waitedMs = performance.now() - beganAtMs;
      const found = [...this.#places].find((place) => place.orgId === orgId);
      if (found !== undefined && takesQueries(found)) {
        found.users++;
        return found;
      }
      const rivals = this.#rivalsOf(orgId, waitedMs < LONGEST_WAIT_FOR_SUSPECTS_MS);
      if (found === undefined && rivals.length === 0) {
        const report = (message: string): void => this.#reportOf(orgId, message);
        const path = join(this.#folder, `${orgId}.duckdb`);
        // DuckDB's temporary files have the same names in every database, so each needs its own folder.
        const temporaryFolder = join(this.#options.temporaryFolder, orgId);
        const options = { ...this.#options, temporaryFolder };
        const replica = new Replica(path, options, this.#store, organisation, report);
        const usedAtMs = performance.now();
        const wanted = new AbortController();
        const place: Place = { orgId, replica, users: 1, usedAtMs, closed: null, wanted };
        this.#places.add(place);
        return place;
      }
      if (waitedMs >= LONGEST_WAIT_MS || left.aborted)
        throw new ReplicasBusy('Too many queries are running; try again later.');
      if (found === undefined) this.#makeRoom(rivals);
      const untilMs =
        waitedMs < LONGEST_WAIT_FOR_SUSPECTS_MS ? LONGEST_WAIT_FOR_SUSPECTS_MS : LONGEST_WAIT_MS;
      await this.#somethingChanged(untilMs - waitedMs, left);
    }
  }

  /** Returns the places of which one must become free for the organisation, or none if there is room. */
  #rivalsOf(orgId: string, waitsForSuspects: boolean): readonly Place[] {
    const places = [...this.#places];
    if (waitsForSuspects && this.#suspects.isSuspect(orgId)) {
      const suspects = places.filter((place) => this.#suspects.isSuspect(place.orgId));
      if (suspects.length > 0) return suspects;
    }
    return places.length < MOST_OPEN_REPLICAS ? [] : places;
  }

  /** Closes an unused replica. If all are used, wants the place of the one that was opened first. */
  #makeRoom(places: readonly Place[]): void {
    this.#closeUnused(places, 0, 1);
    const isMade = places.some(({ closed, wanted }) => closed !== null || wanted.signal.aborted);
    if (!isMade) places[0]!.wanted.abort();
  }

  /** Closes up to `most` replicas that nobody has used for the time, the longest unused first. */
  #closeUnused(places: Iterable<Place>, unusedMs: number, most = Number.POSITIVE_INFINITY): void {
    const usedBeforeMs = performance.now() - unusedMs;
    const unused = [...places]
      .filter(({ users, closed, usedAtMs }) => users === 0 && closed === null && usedAtMs <= usedBeforeMs)
      .sort((a, b) => a.usedAtMs - b.usedAtMs);
    for (const place of unused.slice(0, most)) this.#close(place);
  }

  #close(place: Place): void {
    place.closed = place.replica.close().finally(() => {
      this.#places.delete(place);
      for (const retry of this.#waiting) retry();
    });
  }

  #somethingChanged(withinMs: number, left: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const retry = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(retry);
        left.removeEventListener('abort', retry);
        resolve();
      };
      const timer = setTimeout(retry, withinMs);
      this.#waiting.add(retry);
      left.addEventListener('abort', retry);
    });
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([...this.#places].map(({ replica, closed }) => closed ?? replica.close()));
  }
}

function takesQueries({ closed, wanted, users }: Place): boolean {
  return closed === null && !wanted.signal.aborted && users < MOST_USERS;
}
