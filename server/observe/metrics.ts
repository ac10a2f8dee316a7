// Counts what happens, in plain numbers, and hands it to Prometheus when it asks. Loaded only where metrics are on.

import { monitorEventLoopDelay } from 'node:perf_hooks';
import { problemCodes } from '@headgate/catalogue/problem-codes.ts';
import { type RecordTypeName, recordTypeNames } from '@headgate/catalogue/record-types.ts';
import { collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import {
  type EndedRequest,
  type Facts,
  type InteractionOutcome,
  interactionOutcomes,
  type UploadOutcome,
  uploadOutcomes,
} from './facts.ts';
import { Histogram } from './histogram.ts';
import { type LabelsOf, type MetricName, metricTable } from './metric-table.ts';

export type StoreErrorDuring = 'upload' | 'interaction' | 'read' | 'readiness' | 'upkeep';
/** The ingest threads, by the requests that they take. */
export type ThreadLabel = 'small' | 'large';

/** What is only looked at when Prometheus asks. */
export interface Gauges {
  requestsInProgress(): number;
  bodiesWaiting(): number;
  bytesInFlight(): number;
  readonly bytesInFlightLimit: number;
  jobsAt(thread: ThreadLabel): number;
  writesOf(thread: ThreadLabel): number;
}

export interface MethodOfRoute {
  readonly method: string;
  readonly route: string;
}

export interface Build {
  readonly version: string;
  readonly store: string;
}

interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  /** Where it is not the metric's own. */
  readonly metricName?: string;
}

const DELAY_RESOLUTION_MS = 10;
const NANOSECONDS = 1e9;
const recordFates = ['created', 'updated', 'unchanged'] as const;
const recordOutcomes = [...recordFates, 'rejected', 'failed'] as const;
const storeErrorPlaces: readonly StoreErrorDuring[] = [
  'upload',
  'interaction',
  'read',
  'readiness',
  'upkeep',
];
/** With which requests end that an operator must hear of. */
const serverErrorStatuses = ['500', '503'];
const threads: readonly ThreadLabel[] = ['small', 'large'];
/** Between the values of labels in a key; none of them holds it. */
const BETWEEN = '\n';

/** The series of one metric, by the values of its labels. */
class Series<Name extends MetricName, Value> {
  readonly #labels: readonly string[];
  readonly #newValue: () => Value;
  readonly #byKey = new Map<string, Value>();

  constructor(name: Name, newValue: () => Value) {
    this.#labels = metricTable[name].labels;
    this.#newValue = newValue;
  }

  at(key: string): Value {
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    const value = this.#newValue();
    this.#byKey.set(key, value);
    return value;
  }

  entries(): readonly (readonly [labels: Readonly<Record<string, string>>, value: Value])[] {
    return [...this.#byKey].map(([key, value]) => {
      const values = key.split(BETWEEN);
      return [Object.fromEntries(this.#labels.map((label, at) => [label, values[at]!])), value];
    });
  }
}

class Counter<Name extends MetricName> extends Series<Name, { value: number }> {
  /** Those that are known beforehand begin at 0, so that their first rise is seen as one. */
  constructor(name: Name, known: readonly string[]) {
    super(name, () => ({ value: 0 }));
    for (const key of known) this.at(key);
  }

  add(key: string, count = 1): void {
    this.at(key).value += count;
  }

  samples(): readonly Sample[] {
    return this.entries().map(([labels, { value }]) => ({ labels, value }));
  }
}

class Histograms<Name extends MetricName> extends Series<Name, Histogram> {
  readonly #name: string;

  constructor(name: Name) {
    super(name, () => new Histogram());
    this.#name = metricTable[name].name;
  }

  samples(): readonly Sample[] {
    return this.entries().flatMap(([labels, histogram]) =>
      histogram.samples().map(({ suffix, le, value }) => ({
        metricName: `${this.#name}${suffix}`,
        labels: le === undefined ? labels : { ...labels, le },
        value,
      })),
    );
  }
}

export class Metrics {
  readonly #requests: Counter<'requests'>;
  readonly #requestSeconds = new Histograms('requestSeconds');
  readonly #uploads = new Counter('uploads', pairs(recordTypeNames, uploadOutcomes));
  readonly #records = new Counter('records', pairs(recordTypeNames, recordOutcomes));
  readonly #rejections = new Counter('rejections', Object.keys(problemCodes));
  readonly #interactions = new Counter('interactions', interactionOutcomes);
  readonly #writeSeconds = new Histograms('writeSeconds');
  readonly #storeErrors = new Counter('storeErrors', storeErrorPlaces);
  readonly #threadRestarts = new Counter('threadRestarts', threads);
  readonly #loopDelay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
  readonly #registry = new Registry();

  constructor(routes: readonly MethodOfRoute[], build: Build) {
    const places = routes.map(({ method, route }) => method + BETWEEN + route);
    this.#requests = new Counter('requests', pairs(places, serverErrorStatuses));
    for (const kind of ['upload', 'interaction']) this.#writeSeconds.at(kind);
    this.#loopDelay.enable();
    collectDefaultMetrics({ register: this.#registry });
    this.#serve('requests', () => this.#requests.samples());
    this.#serve('requestSeconds', () => this.#requestSeconds.samples());
    this.#serve('uploads', () => this.#uploads.samples());
    this.#serve('records', () => this.#records.samples());
    this.#serve('rejections', () => this.#rejections.samples());
    this.#serve('interactions', () => this.#interactions.samples());
    this.#serve('writeSeconds', () => this.#writeSeconds.samples());
    this.#serve('storeErrors', () => this.#storeErrors.samples());
    this.#serve('threadRestarts', () => this.#threadRestarts.samples());
    this.#serve('eventLoopDelay', () => this.#takeLoopDelays());
    this.#serve('workers', () => one(1));
    this.#serve('buildInfo', () => [{ labels: { ...build, node: process.version }, value: 1 }]);
  }

  /** Shows what others know at the moment when Prometheus asks. */
  watch(gauges: Gauges): void {
    this.#serve('requestsInProgress', () => one(gauges.requestsInProgress()));
    this.#serve('bodiesWaiting', () => one(gauges.bodiesWaiting()));
    this.#serve('jobs', () => byThread((thread) => gauges.jobsAt(thread)));
    this.#serve('writes', () => byThread((thread) => gauges.writesOf(thread)));
    this.#serve('bytesInFlight', () => one(gauges.bytesInFlight()));
    this.#serve('bytesInFlightLimit', () => one(gauges.bytesInFlightLimit));
  }

  requestEnded({ method, route, status, durationMs }: EndedRequest): void {
    const place = method + BETWEEN + route;
    this.#requests.add(place + BETWEEN + (status ?? 'cut_off'));
    this.#requestSeconds.at(place).observeMs(durationMs);
  }

  /** `type`: null for an interaction. */
  taken(type: RecordTypeName | null, facts: Facts): void {
    const { outcome, writeMs, codes } = facts;
    if (type === null) this.#interactions.add(outcome as InteractionOutcome);
    else this.#countUpload(type, outcome as UploadOutcome, facts);
    if (outcome === 'failed') this.storeFailed(type === null ? 'interaction' : 'upload');
    if (writeMs !== null) this.#writeSeconds.at(type === null ? 'interaction' : 'upload').observeMs(writeMs);
    if (codes === undefined || outcome === 'replayed' || outcome === 'dry_run') return;
    for (const [code, count] of Object.entries(codes)) this.#rejections.add(code, count);
  }

  storeFailed(during: StoreErrorDuring): void {
    this.#storeErrors.add(during);
  }

  threadRestarted(thread: ThreadLabel): void {
    this.#threadRestarts.add(thread);
  }

  /** As prom-client passes them between processes. */
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

  #countUpload(type: RecordTypeName, outcome: UploadOutcome, { counts, codes }: Facts): void {
    this.#uploads.add(type + BETWEEN + outcome);
    if (counts === undefined || outcome === 'replayed' || outcome === 'dry_run') return;
    for (const fate of recordFates)
      if (counts[fate] > 0) this.#records.add(type + BETWEEN + fate, counts[fate]);
    const failed = codes?.store_unavailable ?? 0;
    if (failed > 0) this.#records.add(`${type}${BETWEEN}failed`, failed);
    if (counts.rejected > failed) this.#records.add(`${type}${BETWEEN}rejected`, counts.rejected - failed);
  }

  #takeLoopDelays(): readonly Sample[] {
    const delay = this.#loopDelay;
    const hasSeen = delay.count > 0;
    const nanoseconds: readonly (readonly [stat: string, value: number])[] = [
      ['p50', hasSeen ? delay.percentile(50) : 0],
      ['p99', hasSeen ? delay.percentile(99) : 0],
      ['max', hasSeen ? delay.max : 0],
    ];
    delay.reset();
    // What is measured is the time between two looks, which are never closer than the resolution.
    return nanoseconds.map(([stat, value]) => ({
      labels: { stat } satisfies Record<LabelsOf<'eventLoopDelay'>, string>,
      value: Math.max(0, value / NANOSECONDS - DELAY_RESOLUTION_MS / 1000),
    }));
  }

  #serve(name: MetricName, samples: () => readonly Sample[]): void {
    const { name: fullName, help, type, merging } = metricTable[name];
    const served = {
      name: fullName,
      get: () => Promise.resolve({ name: fullName, help, type, aggregator: merging, values: samples() }),
    };
    // The registry asks nothing else of a metric; its type names the classes that come with it.
    this.#registry.registerMetric(served as unknown as Metric<string>);
  }
}

function one(value: number): readonly Sample[] {
  return [{ labels: {}, value }];
}

function byThread(look: (thread: ThreadLabel) => number): readonly Sample[] {
  return threads.map((thread) => ({ labels: { thread }, value: look(thread) }));
}

function pairs(firsts: readonly string[], seconds: readonly string[]): readonly string[] {
  return firsts.flatMap((first) => seconds.map((second) => first + BETWEEN + second));
}
