// Every metric of Headgate's own, declared once: what is served at /metrics and the table in the docs derive from it.

/** How the values of several worker processes become one. */
export type Merging = 'sum' | 'max' | 'first';

interface MetricDescription {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly help: string;
  readonly merging: Merging;
}

function metric<const Label extends string>(
  type: MetricDescription['type'],
  name: string,
  labels: readonly Label[],
  help: string,
  merging: Merging = 'sum',
): MetricDescription & { readonly labels: readonly Label[] } {
  return { name: `headgate_${name}`, type, labels, help, merging };
}

export const metricTable = {
  requests: metric(
    'counter',
    'requests_total',
    ['method', 'route', 'status'],
    'Requests that are over. The route is the pattern, unmatched for a path that has none, unparsed for what is ' +
      'refused before it has a route: no HTTP, an unknown method; the status is cut_off if the client left ' +
      'before the response.',
  ),
  requestSeconds: metric(
    'histogram',
    'request_duration_seconds',
    ['method', 'route'],
    'From the headers of a request to the end of its answer.',
  ),
  uploads: metric(
    'counter',
    'uploads_total',
    ['type', 'outcome'],
    'Uploads that were looked into: accepted, partly_accepted, refused (no record was good), failed (the store ' +
      'did not confirm it), replayed (answered again from an Idempotency-Key), dry_run.',
  ),
  records: metric(
    'counter',
    'records_total',
    ['type', 'outcome'],
    'Records of uploads: created, updated, unchanged, rejected, or failed, if the store did not confirm a good one. ' +
      'Dry runs and replays are not counted.',
  ),
  rejections: metric(
    'counter',
    'rejections_total',
    ['code'],
    'Reasons for which records and interactions were not accepted; one record may have several.',
  ),
  interactions: metric(
    'counter',
    'interactions_total',
    ['outcome'],
    'Interactions that were looked into: recorded, refused, failed, replayed.',
  ),
  requestsInProgress: metric(
    'gauge',
    'requests_in_progress',
    [],
    'Requests that have begun and are not over.',
  ),
  bodiesWaiting: metric(
    'gauge',
    'bodies_waiting',
    [],
    'Large bodies that wait for their turn to be read; their bytes are still with the clients.',
  ),
  jobs: metric(
    'gauge',
    'jobs_in_progress',
    ['thread'],
    'Requests that an ingest thread has been given and has not answered: those of up to 4 KiB at small, larger and ' +
      'compressed ones at large.',
  ),
  writes: metric(
    'gauge',
    'store_writes_in_progress',
    ['thread'],
    'Writes that the store has been asked for and that are not durable yet.',
  ),
  bytesInFlight: metric(
    'gauge',
    'in_flight_bytes',
    [],
    'Bytes of request bodies and of large answers that are held.',
  ),
  bytesInFlightLimit: metric(
    'gauge',
    'in_flight_limit_bytes',
    [],
    'HEADGATE_MAX_IN_FLIGHT: above it requests are answered 503.',
  ),
  writeSeconds: metric(
    'histogram',
    'store_write_duration_seconds',
    ['kind'],
    'From handing the rows of an upload, or an interaction, to the store until they are durable.',
  ),
  storeErrors: metric(
    'counter',
    'store_errors_total',
    ['during'],
    'Times that the store could not serve: during an upload, an interaction, a read (keys included), a readiness ' +
      'probe, or upkeep.',
  ),
  threadRestarts: metric(
    'counter',
    'thread_restarts_total',
    ['thread'],
    'Threads that ended unexpectedly and were started again; each is a bug worth reporting.',
  ),
  eventLoopDelay: metric(
    'gauge',
    'event_loop_delay_seconds',
    ['stat'],
    'How late the serving thread came to its work since the last scrape: p50, p99 and max.',
    'max',
  ),
  workers: metric('gauge', 'workers', [], 'Processes that serve the port.'),
  buildInfo: metric(
    'gauge',
    'build_info',
    ['version', 'node', 'store'],
    'Always 1; the labels say what runs.',
    'first',
  ),
} as const;

export type MetricName = keyof typeof metricTable;
export type LabelsOf<Name extends MetricName> = (typeof metricTable)[Name]['labels'][number];

/** The table of metrics for the docs, in Markdown. */
export function metricsTable(): string {
  const rows = Object.values(metricTable).map(({ name, type, labels, help }: MetricDescription) => [
    `\`${name}\``,
    type,
    labels.map((label) => `\`${label}\``).join(', '),
    help,
  ]);
  return [['Metric', 'Type', 'Labels', 'What it tells'], ['---', '---', '---', '---'], ...rows]
    .map((cells) => `| ${cells.join(' | ')} |\n`)
    .join('');
}
