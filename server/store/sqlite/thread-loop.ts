// Runs a thread of the store. The thread opens the database when it is ordered to, accepts calls from any number of
// ports, handles the calls in groups, and finishes all accepted calls before it ends.

import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { OrganisationNumber } from '../rows.ts';
import { StoreBusy } from '../store.ts';
import { CallQueue, type Weighed } from './call-queue.ts';
import { asOpeningError } from './errors.ts';
import type { OpenedFiles } from './file-identity.ts';
import { LongCallPauses } from './long-call-pauses.ts';
import { type CallResult, failed, type SentResult, sentResultOf, type ThreadCall } from './thread-calls.ts';
import type { ThreadHealth } from './thread-health.ts';
import type { Tuning } from './tuning.ts';

export type ThreadName = 'writer' | 'reader' | 'lister';

export interface ThreadSetup {
  readonly name: ThreadName;
  readonly path: string;
  readonly tuning: Tuning;
  readonly files: OpenedFiles;
  readonly health: ThreadHealth;
}

export type Order =
  | { readonly kind: 'open' }
  | { readonly kind: 'connect'; readonly port: MessagePort }
  | { readonly kind: 'close' };

/**
 * What the thread sends: once the result of the order `open`, and then problems that the operator should know about but
 * that no call reports.
 */
export type ThreadNews = CallResult | { readonly kind: 'trouble'; readonly message: string };

export interface ThreadService {
  /**
   * The approximate number of rows that a group of calls reads or writes. A group takes no further call once it has
   * this many rows.
   */
  readonly groupRows: number;
  /** The timeout for a call in the queue. A call that has waited longer fails without being started. */
  readonly patienceMs: number;
  /** Returns false while only small calls may start, and large calls have to wait. */
  mayBeginLarge(): boolean;
  /**
   * Handles the calls and returns their outcomes in the same order. The outcome is null for a call that is unfinished
   * and needs another turn. If `isOtherWaiting` returns true, the service may stop early: the remaining calls then have
   * no outcome and have not started. Throws only if the thread cannot continue.
   */
  run(calls: readonly ThreadCall[], isOtherWaiting: () => boolean): readonly (CallResult | null)[];
  /** Runs maintenance after the results have been sent, so that no caller waits for it. */
  betweenGroups(): void;
  close(): Promise<void>;
}

/** The shortest time between two checks for waiting calls. A check costs as much as writing a row. */
const LOOK_EVERY_MS = 10;
/** The pause before the thread checks again whether waiting large calls may start. */
const TRY_LARGE_AGAIN_MS = 2;

interface Taken extends Weighed {
  readonly call: ThreadCall;
  readonly port: MessagePort;
  /** Null once the call has started. */
  arrivedAtMs: number | null;
}

/** Runs the thread. The first order that it receives has to be `open`. */
export function runThread(
  open: (setup: ThreadSetup, reportTrouble: (trouble: string) => void) => ThreadService,
): void {
  const setup = workerData as ThreadSetup;
  let life: ReturnType<typeof begin> | null = null;
  parentPort!.on('message', (order: Order) => {
    if (order.kind === 'connect') life!.connect(order.port);
    else if (order.kind === 'close') void life!.close();
    else {
      try {
        life = begin(open(setup, (message) => tell({ kind: 'trouble', message })));
        tell({ kind: 'done', value: null });
      } catch (error) {
        tell(failed(asOpeningError(setup.path, error)));
      }
    }
  });
}

function tell(news: ThreadNews): void {
  parentPort!.postMessage(news);
}

function begin(service: ThreadService) {
  const ports = new Set<MessagePort>();
  const queue = new CallQueue<Taken>(service.groupRows);
  const pauses = new LongCallPauses();
  let isPumpDue = false;
  let lookedAtMs = 0;

  // `pump` runs after all messages of the event-loop turn have arrived, so that the calls of many callers form one
  // group.
  const duePump = (): void => {
    if (isPumpDue || queue.size === 0) return;
    isPumpDue = true;
    setImmediate(pump);
  };

  const pump = (): void => {
    const mayBeginLarge = service.mayBeginLarge();
    const isHeld = !runOneGroup(
      (organisation) => mayBeginLarge && !pauses.isPausing(organisation, performance.now()),
    );
    service.betweenGroups();
    if (isHeld) setTimeout(pump, TRY_LARGE_AGAIN_MS);
    else {
      isPumpDue = false;
      duePump();
    }
  };

  /** Handles one group of calls. Returns false if calls are waiting but none of them may start. */
  const runOneGroup = (mayBeginLarge: (organisation: OrganisationNumber) => boolean): boolean => {
    const group = queue.takeGroup(mayBeginLarge);
    if (group.length === 0) return queue.size === 0;
    const startedAtMs = performance.now();
    const resultsByPort = new Map<MessagePort, SentResult[]>();
    const finish = ({ call, port }: Taken, outcome: CallResult): void => {
      const results = resultsByPort.get(port) ?? [];
      results.push(sentResultOf(call[0], outcome));
      resultsByPort.set(port, results);
    };
    const begun = group.filter((taken) => {
      const waitedMs = taken.arrivedAtMs === null ? 0 : performance.now() - taken.arrivedAtMs;
      taken.arrivedAtMs = null;
      if (waitedMs <= service.patienceMs) return true;
      const message = `the call waited ${Math.round(waitedMs / 1000)} s for the store: try again later`;
      finish(taken, failed(new StoreBusy(message)));
      return false;
    });
    const outcomes = service.run(
      begun.map(({ call }) => call),
      () => isAwaited(begun, startedAtMs),
    );
    outcomes.forEach((outcome, position) => {
      if (outcome === null) queue.push(begun[position]!);
      else finish(begun[position]!, outcome);
    });
    queue.putBack(begun.slice(outcomes.length));
    for (const [port, results] of resultsByPort) port.postMessage(results);
    const nowMs = performance.now();
    pauses.groupEnded(group, nowMs - startedAtMs, nowMs);
    return true;
  };

  const receive = (calls: readonly ThreadCall[], port: MessagePort): void => {
    const arrivedAtMs = performance.now();
    for (const call of calls) {
      queue.push({ call, port, arrivedAtMs, organisation: call[3], weight: call[4] });
    }
  };

  /**
   * Returns whether other calls wait for the group to end, including calls that have arrived since it started. Checks
   * only every LOOK_EVERY_MS, and returns false in between.
   */
  const isAwaited = (group: readonly Taken[], startedAtMs: number): boolean => {
    const nowMs = performance.now();
    if (nowMs - lookedAtMs < LOOK_EVERY_MS) return false;
    lookedAtMs = nowMs;
    for (const port of ports) {
      for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
        receive(next.message as readonly ThreadCall[], port);
      }
    }
    return queue.isAwaited(group, nowMs - startedAtMs);
  };

  return {
    connect(port: MessagePort): void {
      ports.add(port);
      port.on('message', (calls: readonly ThreadCall[]) => {
        receive(calls, port);
        duePump();
      });
      port.on('close', () => ports.delete(port));
    },

    async close(): Promise<void> {
      while (queue.size > 0) runOneGroup(() => true);
      await service.close();
      for (const port of ports) port.close();
      parentPort!.close();
    },
  };
}
