// What is known of a request when it is over, for metrics, the log and traces. It holds nothing that a client can
// fill at will: no key, no body, no header, no part of a path beyond the route's pattern and a known record type.

import type { ProblemCode } from '@headgate/catalogue/problem-codes.ts';
import type { RecordTypeName } from '@headgate/catalogue/record-types.ts';

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

/** When a request's work was done on the thread that took it in; milliseconds since 1970. Zero: it was not. */
export interface WorkTimes {
  readonly beganAtMs: number;
  readonly writeAskedAtMs: number;
  readonly writtenAtMs: number;
  readonly endedAtMs: number;
}

/** What became of what was sent. Told with the answer, so it is kept small: every field costs on the serving thread. */
export interface IngestSummary {
  readonly outcome: UploadOutcome | InteractionOutcome;
  /** From handing the rows to the store until they were durable; null where there was nothing to write. */
  readonly writeMs: number | null;
  /** Of all batches together; only of uploads. */
  readonly counts?: RecordCounts;
  /** How often each reason was given; absent where none was. */
  readonly codes?: Readonly<Partial<Record<ProblemCode, number>>>;
  /** Only where traces are made. */
  readonly times?: WorkTimes;
}

export interface EndedRequest {
  readonly requestId: string;
  /** Of the trace that the request is part of, where it is part of one. */
  readonly traceId: string | null;
  /** One of the methods that routes have, or OTHER. */
  readonly method: string;
  /** The pattern, such as /v1/data/{type}; `unmatched` for any path that has no route, `unparsed` for what has none yet. */
  readonly route: string;
  /** Null where the client went away before there was an answer. */
  readonly status: number | null;
  /** The client went away before it had the whole answer. */
  readonly isCutOff: boolean;
  readonly isProbe: boolean;
  readonly orgId: string | null;
  readonly keyId: string | null;
  readonly type: RecordTypeName | null;
  readonly summary: IngestSummary | null;
  /** The name of the refusal, where the request was refused as a whole. */
  readonly code: string | null;
  /** Of the body as it came. */
  readonly bodyBytes: number;
  readonly durationMs: number;
}
