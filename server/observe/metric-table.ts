// Declares all of Headgate's own metrics. /metrics and the table in the docs are made from this declaration.

/** How the values of several worker processes are merged. */
type Merging = 'sum' | 'max' | 'first';

function metric(type: 'counter' | 'gauge' | 'histogram') {
  return <const Label extends string>(
    name: string,
    labels: readonly Label[],
    help: string,
    merging: Merging = 'sum',
  ) => ({ name: `headgate_${name}`, type, labels, help, merging });
}

const [counter, gauge, histogram] = [metric('counter'), metric('gauge'), metric('histogram')];

export const metricTable = {
  requests: counter(
    'requests_total',
    ['method', 'route', 'status'],
    'Requests that have ended. route is the pattern of the path, unmatched if the path has no route, or unparsed if ' +
      'the request was refused before routing (not HTTP, or an unknown method). status is cut_off if the client ' +
      'disconnected before the response.',
  ),
  requestSeconds: histogram(
    'request_duration_seconds',
    ['method', 'route'],
    'Time from the headers of a request to the end of its response.',
  ),
  uploads: counter(
    'uploads_total',
    ['type', 'outcome'],
    'Uploads whose records were checked: accepted, partly_accepted, refused (no record was valid), failed (the store ' +
      'did not confirm it), replayed (the stored response of an Idempotency-Key was sent), dry_run.',
  ),
  records: counter(
    'records_total',
    ['type', 'outcome'],
    'Records of uploads: created, updated, unchanged, rejected, or failed (valid, but not confirmed by the store). ' +
      'Dry runs and replays are not counted.',
  ),
  rejections: counter(
    'rejections_total',
    ['code'],
    'Problems because of which records and interactions were not accepted; one record may have several.',
  ),
  interactions: counter(
    'interactions_total',
    ['outcome'],
    'Interactions that were checked: recorded, refused, failed, replayed.',
  ),
  requestsInProgress: gauge('requests_in_progress', [], 'Requests that have begun and not ended.'),
  bodiesWaiting: gauge(
    'bodies_waiting',
    [],
    'Large bodies that wait to be read; the rest of their bytes is still at the clients.',
  ),
  jobs: gauge(
    'jobs_in_progress',
    ['thread'],
    'Requests that an ingest thread has not finished. small takes bodies of up to 4 KiB, large takes larger ones.',
  ),
  writes: gauge(
    'store_writes_in_progress',
    ['thread'],
    'Writes that have been handed to the store and are not durable yet.',
  ),
  bytesInFlight: gauge('in_flight_bytes', [], 'Bytes of request bodies and large responses in memory.'),
  bytesInFlightLimit: gauge(
    'in_flight_limit_bytes',
    [],
    'The limit HEADGATE_MAX_IN_FLIGHT. Requests above it get a 503.',
  ),
  ledgerEntries: gauge('ledger_entries', [], 'Entries in the ledgers of all organisations.', 'max'),
  ledgerIds: gauge(
    'ledger_changed_ids',
    [],
    'Ids of changed records in the ledgers of all organisations. Each takes 16 bytes.',
    'max',
  ),
  followersWaiting: gauge('followers_waiting', [], 'Requests for changes that wait for an entry.'),
  writeSeconds: histogram(
    'store_write_duration_seconds',
    ['kind'],
    'Time from handing an upload or an interaction to the store until it is durable.',
  ),
  storeErrors: counter(
    'store_errors_total',
    ['during'],
    'Errors of the store during an upload, an interaction, a read (including keys), a readiness probe, or upkeep.',
  ),
  threadRestarts: counter(
    'thread_restarts_total',
    ['thread'],
    'Threads that ended unexpectedly and were restarted. Each is a bug; please report it.',
  ),
  eventLoopDelay: gauge(
    'event_loop_delay_seconds',
    ['stat'],
    'Delay of the serving thread since the last scrape: p50, p99 and max.',
    'max',
  ),
  workers: gauge('workers', [], 'Processes that serve the port.'),
  buildInfo: gauge(
    'build_info',
    ['version', 'node', 'store'],
    'Always 1. The labels give the versions and the kind of store.',
    'first',
  ),
} as const;

export type MetricName = keyof typeof metricTable;
export type LabelsOf<Name extends MetricName> = (typeof metricTable)[Name]['labels'][number];
