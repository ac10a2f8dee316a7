// The interface that every database implements. It combines one small interface each for organisations, keys, records,
// interactions, idempotency records, the ledger and segments.
//
// Every store guarantees:
// - When a write resolves, its data is on disk and survives a crash of the process or a power failure.
// - A call that rejects with StoreUnavailable has stored nothing, with one exception that cannot be avoided. If the
//   connection is lost between a commit and its confirmation, or a SQLite file is moved away at that moment and moved
//   back later, the call has stored everything. Uploads and all writes with an idempotency record can be repeated
//   without harm. If an interaction without an idempotency record is repeated, it may be stored twice.
// - A call for one organisation never reads, changes or counts data of another.
// - Records are never removed, only marked as deleted. A positive result of `existing` may therefore be cached forever.
// - A read sees everything that was acknowledged before the read started.

import type { IdempotencyStore } from './idempotency-records.ts';
import type { InteractionStore } from './interactions.ts';
import type { KeyStore } from './keys.ts';
import type { LedgerStore } from './ledger.ts';
import type { OrganisationStore } from './organisations.ts';
import type { RecordStore } from './records.ts';
import type { SegmentStore } from './segments.ts';

/**
 * The database cannot serve now, for example because of a full disk or a lost connection. The same call may succeed
 * later.
 */
export class StoreUnavailable extends Error {
  override readonly name: string = 'StoreUnavailable';
}

/** The database is overloaded. The same call will succeed later, or when fewer calls are made at once. */
export class StoreBusy extends StoreUnavailable {
  override readonly name: string = 'StoreBusy';
}

/**
 * The database cannot be used at all: it does not exist, is not one of Headgate's, or was created by a newer version.
 * Retrying does not help.
 */
export class StoreUnusable extends Error {
  override readonly name = 'StoreUnusable';
}

export interface Store
  extends OrganisationStore,
    KeyStore,
    RecordStore,
    InteractionStore,
    IdempotencyStore,
    LedgerStore,
    SegmentStore {
  /**
   * Resolves if the store can serve calls, and rejects with the reason if the store is broken. Does not wait behind
   * other calls: if the store is only busy, `ping` resolves at once.
   */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** The part of a store that a replica process needs. */
export type ReplicaStore = LedgerStore & SegmentStore & Pick<Store, 'close'>;

/** The part of a store that an ingest thread needs. */
export type IngestStore = Pick<
  Store,
  'existing' | 'write' | 'dryRun' | 'writeInteraction' | 'storedResponse' | 'entryNumber' | 'close'
>;
