// Merges the metrics of several worker processes. The primary process requests the metrics of each worker and adds them
// up.

import cluster, { type Worker } from 'node:cluster';
import { AggregatorRegistry } from 'prom-client';

/** The primary's request to a worker (`Question`) and the worker's response (`Told`), with the request's number. */
interface Question {
  readonly metricsWanted: number;
}
interface Told {
  readonly metricsOf: number;
  readonly values: readonly object[];
}

const RESPONSE_TIMEOUT_MS = 2000;

/** Makes this worker respond to the primary's requests. Returns a function that ends the responses. */
export function sendMetrics(values: () => Promise<readonly object[]>): () => void {
  const onMessage = (message: Partial<Question>): void => {
    const { metricsWanted } = message;
    if (metricsWanted === undefined) return;
    void values().then((ours) => {
      const told: Told = { metricsOf: metricsWanted, values: ours };
      // Sending fails if the primary has just ended. Without a callback, that error would end this process.
      if (process.connected) process.send!(told, undefined, undefined, () => {});
    });
  };
  process.on('message', onMessage);
  return () => {
    process.off('message', onMessage);
  };
}

/**
 * Merges the metrics of all workers. This class is used in the primary. If a worker does not respond in time, its last
 * values are used. The counts of a worker that has ended stay in the sum, because a sum that falls would look like a
 * restart of the whole service.
 */
export class MergedMetrics {
  readonly #workers: () => Iterable<Worker>;
  readonly #lastTold = new Map<number, readonly object[]>();
  readonly #onExit = (worker: Worker): void => this.#retire(worker.id);
  #retired: readonly object[] = [];
  #lastQuestion = 0;

  /** `workers` returns the workers that are serving and can therefore respond. */
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
      const timer = setTimeout(end, RESPONSE_TIMEOUT_MS);
      worker.on('message', onMessage).on('exit', end);
      // Sending fails if the worker is about to end. That error must not end the primary.
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
