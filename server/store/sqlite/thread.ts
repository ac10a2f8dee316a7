// The life of a store's thread: it opens its part of the database when told, takes calls from any number of
// ports, answers them group by group, and finishes what it has taken before it ends.

import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { type Answer, answerOf, type Call, failed, type Outcome } from './calls.ts';
import { asOpeningError } from './database.ts';
import type { OpenedFiles } from './file-identity.ts';
import type { ThreadHealth } from './thread-health.ts';
import type { Tuning } from './tuning.ts';

export interface ThreadSetup {
  readonly path: string;
  readonly tuning: Tuning;
  readonly files: OpenedFiles;
  readonly health: ThreadHealth;
}

export type Order =
  | { readonly kind: 'open' }
  | { readonly kind: 'connect'; readonly port: MessagePort }
  | { readonly kind: 'close' };

/** What a thread tells whoever started it, once. */
export type Opened = Outcome;

/** What it may tell later: something that its operator should hear of, and that nobody who calls it is told. */
export interface Trouble {
  readonly trouble: string;
}

export interface Service {
  /** Up to this weight of calls are answered together; a call that alone is heavier is answered alone. */
  readonly groupWeight: number;
  weightOf(call: Call): number;
  /** One outcome per call, in their order. Throws only where the thread cannot go on. */
  answer(calls: readonly Call[]): readonly Outcome[];
  /** Upkeep for which nobody should wait: it comes after the answers have been given. */
  betweenGroups(): void;
  close(): Promise<void>;
}

interface Taken {
  readonly call: Call;
  readonly port: MessagePort;
}

export function runThread(
  open: (setup: ThreadSetup, tellTrouble: (trouble: string) => void) => Service,
): void {
  const setup = workerData as ThreadSetup;
  const ports = new Set<MessagePort>();
  let queue: Taken[] = [];
  let service: Service | null = null;
  let isPumpDue = false;

  const connect = (port: MessagePort): void => {
    ports.add(port);
    port.on('message', (calls: readonly Call[]) => {
      for (const call of calls) queue.push({ call, port });
      duePump();
    });
    port.on('close', () => ports.delete(port));
  };

  // Pumping after the turn's messages have all come in puts the calls of many callers into one group.
  const duePump = (): void => {
    if (isPumpDue || queue.length === 0) return;
    isPumpDue = true;
    setImmediate(() => {
      isPumpDue = false;
      answerOneGroup();
      service?.betweenGroups();
      duePump();
    });
  };

  const answerOneGroup = (): void => {
    if (service === null || queue.length === 0) return;
    const group = queue.slice(0, groupSize(service, queue));
    queue = queue.slice(group.length);
    const outcomes = service.answer(group.map(({ call }) => call));
    const answersByPort = new Map<MessagePort, Answer[]>();
    group.forEach(({ call, port }, position) => {
      const answers = answersByPort.get(port) ?? [];
      answers.push(answerOf(call[0], outcomes[position]!));
      answersByPort.set(port, answers);
    });
    for (const [port, answers] of answersByPort) port.postMessage(answers);
  };

  const close = async (): Promise<void> => {
    while (queue.length > 0) answerOneGroup();
    await service?.close();
    for (const port of ports) port.close();
    parentPort!.close();
  };

  parentPort!.on('message', (order: Order) => {
    if (order.kind === 'connect') connect(order.port);
    else if (order.kind === 'close') void close();
    else {
      try {
        service = open(setup, (trouble) => parentPort!.postMessage({ trouble } satisfies Trouble));
        parentPort!.postMessage({ kind: 'done', value: null } satisfies Opened);
      } catch (error) {
        parentPort!.postMessage(failed(asOpeningError(setup.path, error)) satisfies Opened);
      }
    }
  });
}

/**
 * Half of what waits, where that is much: while it is answered, the callers of the other half need not be
 * waited for, and while those are answered, these bring their next calls. Taking all would idle in between.
 */
function groupSize({ groupWeight, weightOf }: Service, queue: readonly Taken[]): number {
  const waitingWeight = queue.reduce((sum, { call }) => sum + weightOf(call), 0);
  const fullWeight = Math.min(groupWeight, Math.max(groupWeight, waitingWeight) / 2);
  let weight = 0;
  let size = 0;
  for (const { call } of queue) {
    weight += weightOf(call);
    if (size > 0 && weight > fullWeight) break;
    size++;
  }
  return size;
}
