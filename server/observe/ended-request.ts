// Describes a request that has ended, for metrics, the log and traces. The description contains no text that a client
// can choose freely: no key, body or header. Of the path it contains only the route's pattern and a known record type.

import type { ProblemCode } from '@headgate/catalogue/problem-codes.ts';
import type { UploadTypeName } from '@headgate/catalogue/record-types.ts';

export const uploadOutcomes = [
  'accepted',
  'partly_accepted',
  'refused',
  'failed',
  'replayed',
  'dry_run',
] as const;
export const interactionOutcomes = ['recorded', 'refused', 'failed', 'replayed'] as const;

export type UploadOutcome = (typeof uploadOutcomes)[number];
export type InteractionOutcome = (typeof interactionOutcomes)[number];

export interface RecordCounts {
  readonly received: number;
  readonly created: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly rejected: number;
}

/** When the ingest thread worked on the request, in milliseconds since 1970. Zero means that a step did not happen. */
export interface WorkTimes {
  readonly beganAtMs: number;
  readonly writeAskedAtMs: number;
  readonly writtenAtMs: number;
  readonly endedAtMs: number;
}

/** The result of an upload or interaction. It has few fields, because every field costs time on the serving thread. */
export interface IngestSummary {
  readonly outcome: UploadOutcome | InteractionOutcome;
  /** The time from handing the rows to the store until they were durable. Null if there was nothing to write. */
  readonly writeMs: number | null;
  /** The counts of all batches together. Only uploads have them. */
  readonly counts?: RecordCounts;
  /** How often each problem was reported. Missing if there were no problems. */
  readonly codes?: Readonly<Partial<Record<ProblemCode, number>>>;
  /** Present only if tracing is on. */
  readonly times?: WorkTimes;
}

export interface EndedRequest {
  readonly requestId: string;
  /** The id of the trace to which the request belongs, or null if there is none. */
  readonly traceId: string | null;
  /** A known method, or OTHER. */
  readonly method: string;
  /**
   * The route's pattern, such as /v1/data/{type}. It is `unmatched` if the path has no route, and `unparsed` if the
   * request was refused before its route was looked up.
   */
  readonly route: string;
  /** Null if the client disconnected before the response began. */
  readonly status: number | null;
  /** True if the connection ended before the whole response was sent: the client left, or a query failed late. */
  readonly isCutOff: boolean;
  readonly isProbe: boolean;
  readonly orgId: string | null;
  readonly keyId: string | null;
  readonly type: UploadTypeName | null;
  readonly summary: IngestSummary | null;
  /** The name of the refusal if the whole request was refused, otherwise null. */
  readonly code: string | null;
  /** The size of the body as it was received, before decompression. */
  readonly bodyBytes: number;
  readonly durationMs: number;
}
