// The sizes of a run: `quick` is the default and takes some minutes, `full` checks all claims, and `smoke` only shows
// that the benchmark works.

import type { Scale } from '../tests/harness/neighbours/attacks.ts';
import type { StudentsSize } from './analytics/students.ts';
import type { Mode } from './report/results.ts';

export interface Plan {
  readonly mode: Mode;
  readonly rounds: number;
  /** The rounds with peers. A quick run has only one, because peers take minutes and the differences are large. */
  readonly peerRounds: number;
  readonly recordsPerUpload: number;
  /** The number of uploads in one measurement. */
  readonly uploads: number;
  readonly uploadsBesideLivez: number;
  /** Peers get fewer uploads than other contenders, because they are much slower. */
  readonly peerUploadsPerClient: number;
  readonly clients: readonly number[];
  /** The sizes of the table before a measurement, in transactions. An empty table is always measured, too. */
  readonly rowsPresent: readonly number[];
  /**
   * Whether to run the measurements on PostgreSQL for which nothing is claimed: parallel COPY, filled tables,
   * interactions, attacks.
   */
  readonly allOnPostgres: boolean;
  /** The two sizes of the table, in rows, at which Headgate's speed is compared, or null to skip the comparison. */
  readonly growth: { readonly small: number; readonly large: number } | null;
  /** The number of transactions in the file for `headgate load`, or null to skip the load. */
  readonly loadRecords: number | null;
  /** The number of interactions sent to each server before the first round. */
  readonly interactionsToWarmUp: number;
  readonly interactions: number;
  readonly connections: number;
  readonly memoryClients: number;
  readonly memoryMs: number;
  /** How many attacks to run. The attack with the largest uploads runs in any case. Infinity means all attacks. */
  readonly attacks: number;
  readonly attackRounds: number;
  readonly attackMs: number;
  /** How long to upload new records, which fills the write-ahead log of SQLite. Null skips this attack. */
  readonly lastingAttackMs: number | null;
  readonly attackScale: Scale;
  readonly withPeers: boolean;
  /** The rows on which analytics are measured. */
  readonly students: StudentsSize;
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;

const usual = {
  rounds: 3,
  recordsPerUpload: 5000,
  connections: 64,
  memoryClients: 32,
  attacks: Number.POSITIVE_INFINITY,
  attackMs: 4 * SECOND_MS,
  attackScale: { deletedTags: 500_000, interactions: 100_000, longOffers: 1040 },
  withPeers: true,
  students: { customers: 200_000, transactions: 2_000_000, interactions: 2_000_000 },
};

export const plans: Readonly<Record<Mode, Plan>> = {
  quick: {
    ...usual,
    mode: 'quick',
    peerRounds: 1,
    uploads: 40,
    uploadsBesideLivez: 40,
    peerUploadsPerClient: 1,
    clients: [4],
    rowsPresent: [2_000_000],
    allOnPostgres: false,
    growth: null,
    loadRecords: null,
    interactionsToWarmUp: 60_000,
    interactions: 30_000,
    memoryMs: 15 * SECOND_MS,
    lastingAttackMs: null,
    attackRounds: 1,
  },
  full: {
    ...usual,
    mode: 'full',
    peerRounds: 3,
    uploads: 80,
    uploadsBesideLivez: 160,
    peerUploadsPerClient: 2,
    clients: [1, 4, 16],
    rowsPresent: [2_000_000, 10_000_000],
    allOnPostgres: true,
    growth: { small: 500_000, large: 5_000_000 },
    loadRecords: 1_000_000,
    interactionsToWarmUp: 100_000,
    interactions: 100_000,
    memoryMs: 10 * MINUTE_MS,
    lastingAttackMs: MINUTE_MS,
    attackRounds: 3,
  },
  smoke: {
    mode: 'smoke',
    rounds: 1,
    peerRounds: 1,
    recordsPerUpload: 100,
    uploads: 20,
    uploadsBesideLivez: 40,
    peerUploadsPerClient: 1,
    clients: [1, 4],
    rowsPresent: [1000],
    allOnPostgres: true,
    growth: { small: 500, large: 1000 },
    loadRecords: 1000,
    interactionsToWarmUp: 100,
    interactions: 200,
    connections: 8,
    memoryClients: 4,
    memoryMs: SECOND_MS,
    attacks: 1,
    attackRounds: 1,
    attackMs: SECOND_MS / 2,
    lastingAttackMs: SECOND_MS,
    attackScale: { deletedTags: 100, interactions: 100, longOffers: 10 },
    withPeers: false,
    students: { customers: 200, transactions: 2000, interactions: 2000 },
  },
};
