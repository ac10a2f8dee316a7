// What the analytics process and a replica process send each other besides orders and their responses.

import { join } from 'node:path';
import type { OrderRefusal } from './analytics-orders.ts';
import type { ReplicaDatabaseOptions } from './duckdb.ts';
import type { QueryParameter } from './sql/run-query.ts';

/** How a replica process is set up. */
export interface ReplicaProcessSetup {
  readonly database: string;
  /** The folder of the replicas. */
  readonly folder: string;
  /** The socket on which the process takes orders. */
  readonly socket: string;
  /** Each organisation has a folder of its own in `temporaryFolder`. */
  readonly options: ReplicaDatabaseOptions;
}

export const REPLICA_SETUP_VARIABLE = 'HEADGATE_REPLICA_SETUP';

/** The header with the number of an order. Later orders have higher numbers, also those of other processes. */
export const ORDER_HEADER = 'headgate-order';

/** The status of a response whose content is a Parquet file. */
export const EXPORTED_STATUS = 204;

/** Returns the path of the Parquet file that an order writes. The analytics process sends and removes it. */
export function exportPath(exportFolder: string, order: number): string {
  return join(exportFolder, `${order}.parquet`);
}

export type ToReplicaProcess =
  /** Another organisation waits for the place. */
  | { readonly kind: 'place_wanted' }
  /** The replica must be closed. Orders up to the last one are over. */
  | { readonly kind: 'close'; readonly lastOrder: number }
  | { readonly kind: 'planned'; readonly query: number; readonly refusal: OrderRefusal | null };

export type FromReplicaProcess =
  | { readonly kind: 'ready' }
  /** The process cannot start. The reason is for clients. */
  | { readonly kind: 'not_started'; readonly reason: string }
  | { readonly kind: 'memory'; readonly usedBytes: number }
  /** The process has received an order. */
  | { readonly kind: 'order_begun'; readonly order: number }
  /** The replica is no longer used for an order. The end of its response may still be sent. */
  | { readonly kind: 'order_ended'; readonly order: number }
  /** The replica is closed. If DuckDB still has its file open, the process must not be used again. */
  | { readonly kind: 'closed'; readonly isFileOpen: boolean }
  /** The query should be planned in another process. */
  | {
      readonly kind: 'plan';
      readonly query: number;
      readonly sql: string;
      readonly parameters: readonly QueryParameter[];
    }
  /** DuckDB does not stop a query. Only the end of the process will. */
  | { readonly kind: 'stuck' }
  /** An order was refused, because the replica cannot be used. */
  | { readonly kind: 'unusable'; readonly orgId: string; readonly reason: string };
