// The places of replicas. A place has a process that opens the replica of one organisation. There are few, because each
// may use its share of the memory. A place that nobody uses becomes free after a while, or as soon as another
// organisation needs it. If all are used, the one that was taken first gets no further orders, so that another
// organisation gets it when its orders have ended.

import type { OrderRefusal } from './analytics-orders.ts';
import { CrashPauses } from './crash-pauses.ts';
import { GivingWay } from './giving-way.ts';
import { NotStarted, type StartedReplicaProcess } from './started-replica-process.ts';

export const MOST_PLACES = 4;
const FREED_AFTER_MS = 60_000;
/** Longer than a query may take by default, so that whoever waits gets a place when the running queries have ended. */
const LONGEST_WAIT_MS = 45_000;
/** The orders of one organisation that are carried out at once, for all servers together. */
const MOST_USERS = 4;
/** Gives the refusal of a query that cannot be stopped time to be sent. */
const END_STUCK_AFTER_MS = 500;
/**
 * A process that has sent nothing between this many looks hangs. It may take seconds to close a large replica. Time is
 * not measured, because the whole machine may have been suspended.
 */
const MOST_QUIET_LOOKS = 300;
/** After a failed start, all orders are refused for this time, so that the log does not grow with every order. */
const START_AGAIN_AFTER_MS = 5000;
/**
 * A process does not get back all memory that it has freed. One that has more than this part of its share is not used
 * again.
 */
const MOST_KEPT = 0.75;

interface Place {
  readonly orgId: string;
  readonly process: StartedReplicaProcess;
  users: number;
  usedAtMs: number;
  isClosing: boolean;
  /** Whether another organisation waits for the place. */
  isWanted: boolean;
}

export interface PlacesOptions {
  startProcess(): StartedReplicaProcess;
  /** The most memory that all processes together may use. */
  readonly mostBytes: number;
  report(message: string): void;
}

const busy: OrderRefusal = {
  kind: 'unavailable',
  message: 'Too many queries are running; try again later.',
  position: null,
};

export class Places {
  readonly #options: PlacesOptions;
  readonly #pauses = new CrashPauses();
  readonly #givingWay = new GivingWay();
  readonly #places = new Set<Place>();
  /** A process for the next place, so that a query need not wait for its start. */
  #spare: StartedReplicaProcess | null = null;
  readonly #waiting = new Set<() => void>();
  #isClosed = false;
  #failedStart: { readonly reason: string; readonly untilMs: number } | null = null;

  constructor(options: PlacesOptions) {
    this.#options = options;
    this.#keepSpare();
  }

  /**
   * Calls `use` with the process of the organisation's replica, which stays open until `use` has finished. `use` returns
   * false if the process ended meanwhile. Resolves to why the organisation cannot use its replica, or to null.
   */
  async with(
    orgId: string,
    left: AbortSignal,
    use: (process: StartedReplicaProcess) => Promise<boolean>,
  ): Promise<OrderRefusal | null> {
    const place = await this.#enter(orgId, left);
    if ('kind' in place) return place;
    try {
      await place.process.ready;
      this.#givingWay.begin(place.process);
      return (await use(place.process)) ? null : (this.#pauses.refusalOf(orgId) ?? endedUnexpectedly);
    } catch (error) {
      if (!(error instanceof NotStarted)) throw error;
      return unavailable(error.message);
    } finally {
      place.users--;
      if (place.users === 0) this.#givingWay.end(place.process);
      place.usedAtMs = performance.now();
      if (place.users === 0 && place.isWanted) void this.#close(place);
      this.#retry();
    }
  }

  /** A query of the process cannot be stopped, so the process is ended soon. */
  onStuck(process: StartedReplicaProcess): void {
    this.#end(process, 'a query could not be stopped', END_STUCK_AFTER_MS);
  }

  /**
   * Call this again and again. Frees unused places, and ends processes that hang. If all processes together use too much
   * memory, ends the one that uses the most: DuckDB's memory limit does not include single values, nor what some functions
   * collect.
   */
  look(): void {
    this.#closeUnused(FREED_AFTER_MS);
    const processes = [...this.#places].map(({ process }) => process);
    if (this.#spare !== null) processes.push(this.#spare);
    for (const process of processes) {
      if (process.countQuietLook() > MOST_QUIET_LOOKS)
        this.#end(process, "its queries' process does not respond");
    }
    const usedBytes = processes.reduce((sum, process) => sum + process.usedBytes, 0);
    if (usedBytes <= this.#options.mostBytes) return;
    const [largest] = processes.sort((a, b) => b.usedBytes - a.usedBytes);
    this.#end(largest!, 'its queries needed too much memory');
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#places].map(({ process }) => process.close()));
  }

  /** Resolves to the organisation's place, of which the caller is then a user, or to why it has none. */
  async #enter(orgId: string, left: AbortSignal): Promise<Place | OrderRefusal> {
    const deadlineMs = performance.now() + LONGEST_WAIT_MS;
    for (;;) {
      if (this.#isClosed) return busy;
      const paused = this.#pauses.refusalOf(orgId);
      if (paused !== null) return paused;
      const found = [...this.#places].find((place) => place.orgId === orgId);
      if (found !== undefined && takesOrders(found)) {
        found.users++;
        return found;
      }
      const nowMs = performance.now();
      if (found === undefined && this.#places.size < MOST_PLACES) {
        const failed = this.#failedStart;
        if (this.#spare === null && failed !== null && nowMs < failed.untilMs)
          return unavailable(failed.reason);
        return this.#open(orgId);
      }
      if (nowMs >= deadlineMs || left.aborted) return busy;
      if (found === undefined) this.#makeRoom();
      await this.#somethingChanged(deadlineMs - nowMs, left);
    }
  }

  /** Takes a free place for the organisation. */
  #open(orgId: string): Place {
    const process = this.#spare ?? this.#start();
    this.#spare = null;
    const usedAtMs = performance.now();
    const place: Place = { orgId, process, users: 1, usedAtMs, isClosing: false, isWanted: false };
    this.#places.add(place);
    process.ready.then(() => this.#keepSpare()).catch(() => {});
    return place;
  }

  /** Starts the spare process, if there is room for another place. */
  #keepSpare(): void {
    if (this.#isClosed || this.#spare !== null || this.#places.size === MOST_PLACES) return;
    this.#spare = this.#start();
  }

  #start(): StartedReplicaProcess {
    const started = this.#options.startProcess();
    started.ready.catch(({ message }: Error) => {
      this.#options.report(`a process for queries could not be started: ${message}`);
      this.#failedStart = { reason: message, untilMs: performance.now() + START_AGAIN_AFTER_MS };
    });
    void started.ended.then((reason) => this.#onEnd(started, reason));
    return started;
  }

  /** Whoever has the place of a process that has ended unexpectedly is the reason: nobody else uses the process. */
  #onEnd(ended: StartedReplicaProcess, reason: string): void {
    if (this.#spare === ended) this.#spare = null;
    const place = this.#placeOf(ended);
    if (place === undefined) return;
    if (ended.hasStarted && !place.isClosing)
      this.#pause(place, `its queries' process ended unexpectedly (${reason})`);
    this.#places.delete(place);
    if (ended.hasStarted) this.#keepSpare();
    this.#retry();
  }

  #placeOf(process: StartedReplicaProcess): Place | undefined {
    return [...this.#places].find((place) => place.process === process);
  }

  /** Ends a process. If it has a place, that is because of the organisation's queries. */
  #end(process: StartedReplicaProcess, reason: string, afterMs = 0): void {
    const place = this.#placeOf(process);
    if (place !== undefined) {
      if (!place.isClosing) this.#pause(place, reason);
      place.isClosing = true;
    }
    setTimeout(() => process.kill(), afterMs);
  }

  #pause({ orgId }: Place, reason: string): void {
    const pausedMs = this.#pauses.pause(orgId);
    this.#options.report(
      `organisation ${orgId}: ${reason}; its analytics is paused for ${pausedMs / 1000} s`,
    );
  }

  /** Frees an unused place. If all are used, the one that was taken first gets no further orders. */
  #makeRoom(): void {
    this.#closeUnused(0, 1);
    const places = [...this.#places];
    if (places.some(({ isClosing, isWanted }) => isClosing || isWanted)) return;
    places[0]!.isWanted = true;
    places[0]!.process.wantPlace();
  }

  /** Frees up to `most` places that nobody has used for the time, the longest unused first. */
  #closeUnused(unusedMs: number, most = Number.POSITIVE_INFINITY): void {
    const usedBeforeMs = performance.now() - unusedMs;
    const unused = [...this.#places]
      .filter(({ users, isClosing, usedAtMs }) => users === 0 && !isClosing && usedAtMs <= usedBeforeMs)
      .sort((a, b) => a.usedAtMs - b.usedAtMs);
    for (const place of unused.slice(0, most)) void this.#close(place);
  }

  async #close(place: Place): Promise<void> {
    if (place.isClosing) return;
    place.isClosing = true;
    const { process } = place;
    await process.close();
    const mostBytes = (this.#options.mostBytes / MOST_PLACES) * MOST_KEPT;
    const isReusable = process.isReusable && process.usedBytes <= mostBytes;
    this.#places.delete(place);
    if (this.#spare === null && isReusable) this.#spare = process;
    else void process.endOnceSent();
    this.#keepSpare();
    this.#retry();
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

  #retry(): void {
    for (const retry of this.#waiting) retry();
  }
}

function takesOrders({ isClosing, isWanted, users }: Place): boolean {
  return !isClosing && !isWanted && users < MOST_USERS;
}

function unavailable(reason: string): OrderRefusal {
  return { kind: 'unavailable', message: `Analytics is not available: ${reason}`, position: null };
}

const endedUnexpectedly = unavailable('the process that runs queries ended unexpectedly; try again.');
