// What a server and the analytics process send each other, over a local socket.

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { ReportGrouping, WindowDays } from '@headgate/client/recommendations.ts';
import type { OrganisationNumber } from '../store/rows.ts';

/** How the analytics process is set up. The first server that needs it starts it with its own settings. */
export interface AnalyticsSetup {
  readonly database: string;
  /** The folder of the replicas. */
  readonly folder: string;
  /** The most memory that all queries together may use. */
  readonly memoryMb: number;
  /** The process ends if no order has arrived for this time. */
  readonly idleMs: number;
}

export const SETUP_VARIABLE = 'HEADGATE_ANALYTICS_SETUP';

/** The longest path of a socket that every system accepts. */
const LONGEST_SOCKET_PATH_BYTES = 103;

/** Returns the path of the socket. Each database has its own analytics process. */
export function socketPath({ folder, database }: Pick<AnalyticsSetup, 'folder' | 'database'>): string {
  return join(folder, `${createHash('sha256').update(database).digest('hex').slice(0, 8)}.sock`);
}

/** Returns the path of the socket of a replica process. It is not longer than that of the analytics process. */
export function replicaSocketPath(setup: AnalyticsSetup, number: number): string {
  return socketPath(setup).replace(/sock$/, String(number));
}

export function isTooLongForSocket(setup: AnalyticsSetup): boolean {
  return Buffer.byteLength(socketPath(setup)) > LONGEST_SOCKET_PATH_BYTES;
}

export const sqlFormats = ['json', 'csv', 'ndjson', 'parquet'] as const;
export type SqlFormat = (typeof sqlFormats)[number];

/** What every order to the analytics process has: whose replica is used, and for how long DuckDB may use it. */
export interface Order {
  readonly organisation: OrganisationNumber;
  readonly orgId: string;
  readonly timeoutMs: number;
}

/** A query that a replica process runs. Its response is the rendered result, or a refusal. */
export interface SqlOrder extends Order {
  readonly sql: string;
  readonly params: readonly (string | number | boolean | null)[];
  readonly format: SqlFormat;
  /** In CSV: whether names and texts that a spreadsheet would run as formulas are marked. */
  readonly isForSpreadsheet: boolean;
  /** The most rows of the response, or null if there is no limit. */
  readonly mostRows: number | null;
}

/** How long after a touch a purchase is credited to it, in days, in ascending order. */
export const windowsDays = [1, 7, 30] as const satisfies readonly WindowDays[];

/** What a report can be grouped by. */
export const reportGroupings = [
  'item_type',
  'day',
  'platform',
  'interaction_type',
] as const satisfies readonly ReportGrouping[];

/** A recommendation report that a replica process computes. */
export interface ReportOrder extends Order {
  /** The first and the last day, in UTC. */
  readonly from: string;
  readonly to: string;
  readonly by: ReportGrouping | null;
  /** The segment that gets no recommendations, or null for no comparison with one. */
  readonly holdout: string | null;
}

/** A condition whose members a replica process counts. The condition is valid. */
export interface PreviewOrder extends Order {
  readonly condition: unknown;
}

/** A customer for whom a replica process explains a segment's condition. */
export interface ExplanationOrder extends Order {
  readonly segment: string;
  readonly customerId: string;
}

/** A segment that a replica process evaluates. */
export interface EvaluationOrder extends Order {
  readonly segment: string;
  /** Identifies the evaluation, so that an order that is sent again does not wait for itself. */
  readonly token: string;
  /** How long to wait for the end of another evaluation of the same segment. */
  readonly patienceMs: number;
}

export interface EvaluationOutcome {
  /** True if the segment was not evaluated, because another evaluation of it is running. */
  readonly isRunning: boolean;
}

/** Why an order has no result. */
export interface OrderRefusal {
  readonly kind: 'invalid' | 'too_slow' | 'too_large' | 'unavailable';
  readonly message: string;
  /** The number of characters before the error in the query's text, or null if it has no place. */
  readonly position: number | null;
  /** When the order can be sent again, if that is known. */
  readonly retryAfterS?: number;
}

/** The header that says what a query has seen, as JSON. */
export const AS_OF_HEADER = 'Headgate-As-Of';

/** The header of an order that says whose replica is used. */
export const ORGANISATION_HEADER = 'headgate-organisation';

export const REFUSED_STATUS = 422;
