// How far a replica has been built. The state is stored in the replica itself, together with the rows.

import type { DuckDBConnection } from '@duckdb/node-api';
import type { UploadTypeName } from '@headgate/catalogue/record-types.ts';
import type { ChangePosition } from '../store/ledger.ts';
import { BEGIN_READING } from './duckdb.ts';
import type { SegmentState } from './replica-segments.ts';

export interface ReplicaState {
  /** The type whose records are read first, or null once all types have been read and the changes are followed. */
  readonly type: UploadTypeName | null;
  readonly afterId: string | null;
  readonly position: ChangePosition;
  /** The request of the entry at the position, to recognise another ledger. Null at the beginning. */
  readonly requestId: string | null;
  /** The ledger's entries up to this one are in the table `uploads`. */
  readonly uploadsSeq: number;
  readonly segments: readonly SegmentState[];
}

const STATE_SQL = 'SELECT state FROM replica_state';

/**
 * Thrown if the replica cannot be continued: its file is damaged, or it does not fit the ledger, for example because the
 * store was restored from a backup.
 */
export class Unusable extends Error {}

/** Returns the number of the last entry that is included completely, or 0 while the records are copied. */
export function seqOf({ type, position, uploadsSeq }: ReplicaState): number {
  const { seq, ids } = position;
  return type === null ? Math.min(ids === null ? seq : seq - 1, uploadsSeq) : 0;
}

/** Begins a transaction that can only read. Returns the state that it sees. */
export function beginReading(connection: DuckDBConnection): Promise<ReplicaState> {
  return stateFrom(connection, `${BEGIN_READING}; ${STATE_SQL}`);
}

/** Returns the state that the connection's current transaction sees. */
export function stateIn(connection: DuckDBConnection): Promise<ReplicaState> {
  return stateFrom(connection, STATE_SQL);
}

async function stateFrom(connection: DuckDBConnection, sql: string): Promise<ReplicaState> {
  const found = await connection.runAndReadAll(sql);
  const [row] = found.getRows() as [string][];
  return JSON.parse(row![0]) as ReplicaState;
}
