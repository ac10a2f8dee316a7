// A store of records: the sum of one small port for each noun, which every database implements.
//
// What every store promises:
// - When a writing call resolves, what it wrote is on disk and survives the loss of the process or power.
// - A call that rejects with StoreUnavailable has stored nothing of what it was given. One exception cannot be
//   avoided: if the connection is lost between a commit and its confirmation, or a SQLite file is moved away at that
//   moment and back later, all was stored. Uploads, and everything with an idempotency record, can be repeated without
//   harm; an interaction without one may then be stored twice.
// - A call that is made for one organisation never reads, changes or counts anything of another.
// - Existence only grows: a record that was seen to exist exists forever, so a positive result of
//   `existing` may be cached without end.
// - A reading call sees everything that was acknowledged before it began.

import type { IdempotencyStore } from './idempotency-records.ts';
import type { InteractionStore } from './interactions.ts';
import type { KeyStore } from './keys.ts';
import type { OrganisationStore } from './organisations.ts';
import type { RecordStore } from './records.ts';

/**
 * The database cannot serve now, for example because of a full disk or a lost connection. The same call may succeed
 * later.
 */
export class StoreUnavailable extends Error {
  override readonly name: string = 'StoreUnavailable';
}

/** The database is overloaded. The call will succeed later, or with fewer calls at once. */
export class StoreBusy extends StoreUnavailable {
  override readonly name: string = 'StoreBusy';
}

/**
 * The database cannot be used at all: it is missing, not Headgate's, or from a newer version. Retrying does not help.
 */
export class StoreUnusable extends Error {
  override readonly name = 'StoreUnusable';
}

export interface Store extends OrganisationStore, KeyStore, RecordStore, InteractionStore, IdempotencyStore {
  /**
   * Resolves if the store can serve, and rejects with the reason if it is broken. It does not wait behind other calls:
   * it resolves at once if the store is only busy.
   */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** The part of a store that an ingest thread needs. */
export type IngestStore = Pick<Store, 'existing' | 'write' | 'writeInteraction' | 'storedResponse' | 'close'>;
