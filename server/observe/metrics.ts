// Collects the metrics for Prometheus. This module is loaded only if metrics are on.

import { monitorEventLoopDelay } from 'node:perf_hooks';
import { problemCodes } from '@headgate/catalogue/problem-codes.ts';
import { recordTypeNames, type UploadTypeName } from '@headgate/catalogue/record-types.ts';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import {
  type EndedRequest,
  type IngestSummary,
  interactionOutcomes,
  uploadOutcomes,
} from './ended-request.ts';
import { type LabelsOf, type MetricName, metricTable } from './metric-table.ts';

const storeErrorPlaces = ['upload', 'interaction', 'read', 'readiness', 'upkeep'] as const;
/** The ingest threads, named by the size of their requests. */
const threads = ['small', 'large'] as const;
export type ThreadLabel = (typeof threads)[number];

const DELAY_RESOLUTION_MS = 10;
const NANOSECONDS = 1e9;
const recordFates = ['created', 'updated', 'unchanged'] as const;
const recordOutcomes = [...recordFates, 'rejected', 'failed'] as const;
/** The statuses for which an operator has alerts. */
const serverErrorStatuses = ['500', '503'];
const bucketsSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** The counters start at 0 for all known label values, so that Prometheus sees the first increase of each. */
export class Metrics {
  readonly #registry = newRegistry();
  readonly #requests = new Counter(this.#config('requests'));
  readonly #requestSeconds = new Histogram({ ...this.#config('requestSeconds'), buckets: bucketsSeconds });
  readonly #uploads = new Counter(this.#config('uploads'));
  readonly #records = new Counter(this.#config('records'));
  readonly #rejections = new Counter(this.#config('rejections'));
  readonly #interactions = new Counter(this.#config('interactions'));
  readonly #writeSeconds = new Histogram({ ...this.#config('writeSeconds'), buckets: bucketsSeconds });
  readonly #storeErrors = new Counter(this.#config('storeErrors'));
  readonly #threadRestarts = new Counter(this.#config('threadRestarts'));
  readonly #loopDelay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });

  constructor(
    routes: readonly { readonly method: string; readonly route: string }[],
    build: { readonly version: string; readonly store: string },
  ) {
    for (const place of routes) {
      for (const status of serverErrorStatuses) this.#requests.inc({ ...place, status }, 0);
    }
    for (const type of recordTypeNames) {
      for (const outcome of uploadOutcomes) this.#uploads.inc({ type, outcome }, 0);
      for (const outcome of recordOutcomes) this.#records.inc({ type, outcome }, 0);
    }
    for (const code of Object.keys(problemCodes)) this.#rejections.inc({ code }, 0);
    for (const outcome of interactionOutcomes) this.#interactions.inc({ outcome }, 0);
    for (const kind of ['upload', 'interaction']) this.#writeSeconds.zero({ kind });
    for (const during of storeErrorPlaces) this.#storeErrors.inc({ during }, 0);
    for (const thread of threads) this.#threadRestarts.inc({ thread }, 0);
    this.#loopDelay.enable();
    this.#gauge('eventLoopDelay', (gauge) => this.#takeLoopDelays(gauge));
    this.watch('workers', () => 1);
    this.#gauge('buildInfo', (gauge) => gauge.set({ ...build, node: process.version }, 1));
  }

  /** Adds a gauge whose value is read during a scrape. */
  watch(name: MetricName, value: () => number): void {
    this.#gauge(name, (gauge) => gauge.set(value()));
  }

  /** Adds a gauge that has a value for each ingest thread. */
  watchThreads(name: 'jobs' | 'writes', read: (thread: ThreadLabel) => number): void {
    this.#gauge(name, (gauge) => {
      for (const thread of threads) gauge.set({ thread }, read(thread));
    });
  }

  requestEnded({ method, route, status, durationMs }: EndedRequest): void {
    this.#requests.inc({ method, route, status: status ?? 'cut_off' });
    this.#requestSeconds.observe({ method, route }, durationMs / 1000);
  }

  /** Counts an upload or interaction. `type` is null for an interaction. */
  taken(type: UploadTypeName | null, summary: IngestSummary): void {
    const { outcome, writeMs, codes } = summary;
    const kind = type === null ? 'interaction' : 'upload';
    if (type === null) this.#interactions.inc({ outcome });
    else this.#countUpload(type, summary);
    if (outcome === 'failed') this.storeFailed(kind);
    if (writeMs !== null) this.#writeSeconds.observe({ kind }, writeMs / 1000);
    if (codes === undefined || outcome === 'replayed' || outcome === 'dry_run') return;
    for (const [code, count] of Object.entries(codes)) this.#rejections.inc({ code }, count);
  }

  storeFailed(during: (typeof storeErrorPlaces)[number]): void {
    this.#storeErrors.inc({ during });
  }

  threadRestarted(thread: ThreadLabel): void {
    this.#threadRestarts.inc({ thread });
  }

  /** Resolves to the metrics in the form that prom-client passes between processes. */
  values(): Promise<readonly object[]> {
    return this.#registry.getMetricsAsJSON();
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }

  close(): void {
    this.#loopDelay.disable();
    this.#registry.clear();
  }

  #countUpload(type: UploadTypeName, { outcome, counts, codes }: IngestSummary): void {
    this.#uploads.inc({ type, outcome });
    if (counts === undefined || outcome === 'replayed' || outcome === 'dry_run') return;
    for (const fate of recordFates) this.#records.inc({ type, outcome: fate }, counts[fate]);
    const failed = codes?.store_unavailable ?? 0;
    this.#records.inc({ type, outcome: 'failed' }, failed);
    this.#records.inc({ type, outcome: 'rejected' }, counts.rejected - failed);
  }

  #takeLoopDelays(gauge: Gauge<LabelsOf<'eventLoopDelay'>>): void {
    const delay = this.#loopDelay;
    const hasSeen = delay.count > 0;
    const nanoseconds = {
      p50: hasSeen ? delay.percentile(50) : 0,
      p99: hasSeen ? delay.percentile(99) : 0,
      max: hasSeen ? delay.max : 0,
    };
    delay.reset();
    // The histogram measures the time between two ticks of a timer. That time includes the timer's own interval, which
    // is therefore subtracted.
    for (const [stat, value] of Object.entries(nanoseconds)) {
      gauge.set({ stat }, Math.max(0, value / NANOSECONDS - DELAY_RESOLUTION_MS / 1000));
    }
  }

  /** Adds a gauge whose values are set during a scrape. */
  #gauge<Name extends MetricName>(name: Name, collect: (gauge: Gauge<LabelsOf<Name>>) => void): void {
    const gauge: Gauge<LabelsOf<Name>> = new Gauge({
      ...this.#config(name),
      collect: () => collect(gauge),
    });
  }

  #config<Name extends MetricName>(name: Name) {
    const { name: fullName, help, labels, merging } = metricTable[name];
    const labelNames = labels as readonly LabelsOf<Name>[];
    return { name: fullName, help, labelNames, aggregator: merging, registers: [this.#registry] };
  }
}

function newRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}
