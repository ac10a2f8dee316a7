// How much is measured: a few minutes by default, all that is claimed with --full, next to nothing as a smoke test.

import type { Scale } from '../tests/harness/neighbours/attacks.ts';
import type { Mode } from './report/results.ts';

export interface Plan {
  readonly mode: Mode;
  readonly rounds: number;
  /** Peers take minutes to start and to upload, and are far enough away for one round to tell. */
  readonly peerRounds: number;
  readonly recordsPerUpload: number;
  /** Uploads in one measurement. */
  readonly uploads: number;
  readonly uploadsBesideLivez: number;
  /** Peers are so much slower that a measurement of the usual size would take minutes. */
  readonly peerUploadsPerClient: number;
  readonly clients: readonly number[];
  /** Transactions in the tables before a measurement, besides none. */
  readonly rowsPresent: readonly number[];
  /** On PostgreSQL also that of which nothing is claimed there: several COPYs at once, rows present, interactions. */
  readonly allOnPostgres: boolean;
  /** The same server's speed at these two sizes is compared. */
  readonly growth: { readonly small: number; readonly large: number } | null;
  /** Transactions in the file that `headgate load` loads; null where it is left out. */
  readonly loadRecords: number | null;
  /** Sent to each server before the first round. */
  readonly interactionsToWarmUp: number;
  readonly interactions: number;
  readonly connections: number;
  readonly memoryClients: number;
  readonly memoryMs: number;
  /** The first so many attacks on a neighbour, and those with figures of their own; infinite for all. */
  readonly attacks: number;
  readonly attackRounds: number;
  readonly attackMs: number;
  readonly attackScale: Scale;
  readonly withPeers: boolean;
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
    attackScale: { deletedTags: 100, interactions: 100, longOffers: 10 },
    withPeers: false,
  },
};
