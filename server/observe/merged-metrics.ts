// The metrics of several worker processes as one: the primary asks each for its own, and adds them up.

import cluster, { type Worker } from 'node:cluster';
import { AggregatorRegistry } from 'prom-client';

/** What the primary asks of a worker, and what it is told. */
interface Question {
  readonly metricsWanted: number;
}
interface Told {
  readonly metricsOf: number;
  readonly values: readonly object[];
}

const ANSWER_TIMEOUT_MS = 2000;

/** In a worker: answers the primary for as long as both live. */
export function sendMetrics(values: () => Promise<readonly object[]>): () => void {
  const onMessage = (message: Partial<Question>): void => {
    const { metricsWanted } = message;
    if (metricsWanted === undefined) return;
    void values().then((ours) => {
      const told: Told = { metricsOf: metricsWanted, values: ours };
      // A primary that has just ended needs no answer; without a callback the error would end this process.
      if (process.connected) process.send!(told, undefined, undefined, () => {});
    });
  };
  process.on('message', onMessage);
  return () => {
    process.off('message', onMessage);
  };
}

/**
 * In the primary. A worker that does not answer in time counts with what it told last, and so does one that has
 * ended: its counts stay in the sum, because a sum that falls would look like a restart of the whole service.
 */
export class MergedMetrics {
  readonly #workers: () => Iterable<Worker>;
  readonly #lastTold = new Map<number, readonly object[]>();
  readonly #onExit = (worker: Worker): void => this.#retire(worker.id);
  #retired: readonly object[] = [];
  #lastQuestion = 0;

  /** `workers`: those that serve by now, and so can be asked. */
  constructor(workers: () => Iterable<Worker>) {
    this.#workers = workers;
    cluster.on('exit', this.#onExit);
  }

  async text(): Promise<string> {
    await Promise.all(Array.from(this.#workers(), (worker) => this.#ask(worker)));
    return merge([this.#retired, ...this.#lastTold.values()]).metrics();
  }

  close(): void {
    cluster.off('exit', this.#onExit);
  }

  #ask(worker: Worker): Promise<void> {
    const number = ++this.#lastQuestion;
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        worker.off('message', onMessage).off('exit', end);
        resolve();
      };
      const onMessage = ({ metricsOf, values }: Partial<Told>): void => {
        if (metricsOf !== number) return;
        this.#lastTold.set(worker.id, values!);
        end();
      };
      const timer = setTimeout(end, ANSWER_TIMEOUT_MS);
      worker.on('message', onMessage).on('exit', end);
      // A worker that is about to end cannot be written to, and is no reason for the primary to end as well.
      worker.send({ metricsWanted: number } satisfies Question, (error) => {
        if (error !== null) end();
      });
    });
  }

  #retire(workerId: number): void {
    const last = this.#lastTold.get(workerId);
    if (last === undefined) return;
    this.#lastTold.delete(workerId);
    const counts = last.filter((metric) =>
      ['counter', 'histogram'].includes((metric as { type: string }).type),
    );
    this.#retired = merge([this.#retired, counts]).getMetricsAsArray();
  }
}

function merge(told: readonly (readonly object[])[]): InstanceType<typeof AggregatorRegistry> {
  return AggregatorRegistry.aggregate(told as object[]) as InstanceType<typeof AggregatorRegistry>;
}
