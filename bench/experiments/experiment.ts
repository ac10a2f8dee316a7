// The interface of an experiment: its input and its findings.

import type { Contender } from '../contenders/contender.ts';
import type { PostgresDatabases, SqliteDatabases } from '../databases.ts';
import { claims, type FigureId } from '../figures.ts';
import type { Timed, UploadOrder } from '../load/uploads.ts';
import type { Plan } from '../plan.ts';
import type { Comparison, Figure } from '../report/results.ts';
import type { Turn } from '../rounds.ts';
import type { WorkloadName } from '../workloads.ts';

/** The default number of uploading clients. */
export const CLIENTS = 4;
const SEED = 1000;

export interface Bench {
  readonly plan: Plan;
  readonly sqlite: SqliteDatabases;
  readonly postgres: PostgresDatabases;
  readonly peers: Peers;
  say(line: string): void;
}

export interface Peer {
  readonly contender: Contender;
  /** The figure that compares Headgate with this peer, or null if nothing is claimed. */
  readonly claim: FigureId | null;
}

/** The peers that could be installed. */
export interface Peers {
  readonly onSqlite: readonly Peer[];
  readonly onPostgres: readonly Peer[];
}

export interface Findings {
  readonly comparisons: readonly Comparison[];
  readonly figures: readonly Figure[];
}

export type Experiment = (bench: Bench) => Promise<Findings>;

export function figure(id: FigureId, values: readonly number[]): Figure {
  return { id, ...claims[id], values };
}

export function perSecond({ count, elapsedMs }: Timed): number {
  return (count * 1000) / elapsedMs;
}

/** Returns an order with the same records every time. All rounds can use it, because each round has new stores. */
export function orderOf(
  { uploads, recordsPerUpload }: Plan,
  workload: WorkloadName,
  clients = CLIENTS,
): UploadOrder {
  return { workload, seed: SEED, uploads, recordsPerUpload, clients };
}

/**
 * Returns a turn that starts the contender on a store with the given number of rows, measures the uploads of the order,
 * and stops the contender. If `again` is given, `measure` repeats the same uploads and adds their rate to `again`.
 */
export function uploadTurn(
  contender: Contender,
  rowsPresent: number,
  order: UploadOrder,
  again: number[] | null = null,
): Turn {
  return {
    contender: contender.name,
    unit: 'records/s',
    async measure() {
      const running = await contender.start(rowsPresent);
      try {
        const first = perSecond(await running.upload(order));
        again?.push(perSecond(await running.upload(order)));
        return first;
      } finally {
        await running.stop();
      }
    },
  };
}
