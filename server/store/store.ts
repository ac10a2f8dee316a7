// WHERE records are kept: the port between ingest and a database, in the domain's words.
//
// What every store promises:
// - When a writing call resolves, what it wrote is on disk and survives the loss of the process or power.
// - A call that rejects with StoreUnavailable has stored nothing of what it was given. One exception cannot be
//   avoided: where the connection is lost between a commit and the news of it, or a SQLite file is moved away at that
//   moment and back later, all was stored. Uploads, and all that carries a memory, can be repeated without harm; an
//   interaction without one may then be stored twice.
// - Nothing of one organisation is ever seen, touched or counted by a call made for another.
// - Existence only grows: a record that was seen to exist exists forever, so a positive answer of
//   `existing` may be cached without end.
// - A reading call sees everything that was acknowledged before it began.
//
// Values cross the port in the kept form that the catalogue's kinds give (date-times in UTC text of fixed
// width, UUIDs in lower case), each row in the order of its type's declared fields.

import type { ColumnValue } from '@headgate/catalogue/kinds/kind.ts';
import type { RecordTypeName } from '@headgate/catalogue/record-types.ts';

/** The database cannot serve now (a full disk, a lost connection); the same call may succeed later. */
export class StoreUnavailable extends Error {
  override readonly name: string = 'StoreUnavailable';
}

/** The database serves, but has too much to do for this call; fewer calls at once, or later, will succeed. */
export class StoreBusy extends StoreUnavailable {
  override readonly name: string = 'StoreBusy';
}

/** The database cannot be used at all (from a newer version, not ours, not there); retrying is no help. */
export class StoreUnusable extends Error {
  override readonly name = 'StoreUnusable';
}

/** An organisation's number within this database. It is the first column of every key. */
export type OrganisationNumber = number;

export interface Organisation {
  readonly organisation: OrganisationNumber;
  readonly orgId: string;
  readonly name: string;
  readonly createdAtMs: number;
}

export interface ApiKey {
  readonly keyId: string;
  readonly organisation: OrganisationNumber;
  readonly orgId: string;
  /** SHA-256 of the secret, in hex. The secret itself is nowhere. */
  readonly secretHash: string;
  readonly name: string | null;
  readonly scopes: readonly string[];
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
  readonly revokedAtMs: number | null;
  readonly lastUsedAtMs: number | null;
  /** The id of the successor that it was rotated to. A key has at most one. */
  readonly replacedBy: string | null;
}

/** A record's values in the order of its type's declared fields. */
export type Row = readonly ColumnValue[];

/** What became of a batch's rows. */
export interface Tally {
  readonly created: number;
  readonly updated: number;
  /** Identical to what is stored, or older than it. */
  readonly unchanged: number;
}

/** What an idempotency key stands for: one organisation's key on one path. */
export interface MemoryKey {
  readonly organisation: OrganisationNumber;
  readonly path: string;
  readonly key: string;
}

/** An answer to be kept with what it answers, so that the same request can be answered again. */
export interface Memory extends MemoryKey {
  /** Tells one request body from another. */
  readonly fingerprint: string;
  /** The answer, all but the tallies. */
  readonly answer: Uint8Array;
  readonly keptAtMs: number;
  readonly expiresAtMs: number;
}

/** An answer that was kept, with the tallies of the write that it was kept with. */
export interface Remembered {
  readonly fingerprint: string;
  readonly answer: Uint8Array;
  readonly tallies: readonly Tally[];
}

export interface Upload {
  readonly organisation: OrganisationNumber;
  readonly type: RecordTypeName;
  /** Per batch the rows to upsert. No id occurs twice in an upload. */
  readonly batches: readonly (readonly Row[])[];
  /** Tally what the upload would do, and store nothing. */
  readonly dryRun: boolean;
  readonly memory: Memory | null;
}

/**
 * `already` when the idempotency key had been taken meanwhile, `running` when another request under the same
 * key is being written at this moment, perhaps by another process: nothing was stored.
 */
export type Written =
  | { readonly kind: 'written'; readonly tallies: readonly Tally[] }
  | { readonly kind: 'running' }
  | { readonly kind: 'already'; readonly remembered: Remembered };

export interface InteractionWrite {
  readonly organisation: OrganisationNumber;
  /** In the order of the catalogue's `storedInteraction`; null to keep only the memory. */
  readonly row: Row | null;
  readonly memory: Memory | null;
}

export interface RecordPage {
  /** `next` of the page before; null for the first one. */
  readonly afterId: string | null;
  /** The most rows; a page may have fewer. */
  readonly limit: number;
  readonly includeDeleted: boolean;
}

export interface InteractionPage {
  /** Equality filters on declared fields, in kept form. */
  readonly equal: Readonly<Record<string, ColumnValue>>;
  /** Bounds on `occurred_at`: from is included, to is not. */
  readonly from: string | null;
  readonly to: string | null;
  /** `next` of the page before; null for the first one. */
  readonly before: InteractionPosition | null;
  /** The most rows; a page may have fewer. */
  readonly limit: number;
}

/** The place of an interaction in its organisation's list. There need not be one at it any longer. */
export interface InteractionPosition {
  readonly occurredAt: string;
  readonly interactionId: string;
}

/**
 * A part of a list. It ends at `limit` rows, at about PAGE_BYTES, or when the store has looked at as much as it looks at
 * for one page (page-bounds.ts), so that it may have fewer rows than asked for, even none, although there are more.
 */
export interface Page<Position> {
  readonly rows: readonly Row[];
  /**
   * Null if and only if the store has seen the end of the list. Otherwise the position behind which the next page
   * begins; that page may turn out to be empty.
   */
  readonly next: Position | null;
}

/** A store is the sum of one small port for each noun. */
export interface Store extends OrganisationStore, KeyStore, RecordStore, InteractionStore, IdempotencyStore {
  /** Returns how many records of the type, or interactions, exist; deleted records included. */
  count(organisation: OrganisationNumber, what: RecordTypeName | 'interactions'): Promise<number>;
  /**
   * Resolves if the store can serve, and rejects with the reason if it is broken. It does not wait behind other calls: a
   * store that is only busy resolves at once.
   */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** What a thread needs that takes records in. */
export type IngestStore = Pick<Store, 'existing' | 'write' | 'writeInteraction' | 'recall' | 'close'>;

export interface OrganisationStore {
  /** Returns null if the name is taken. */
  createOrganisation(name: string, orgId: string, createdAtMs: number): Promise<Organisation | null>;
  /** Returns all, by name. */
  organisations(): Promise<readonly Organisation[]>;
}

export interface KeyStore {
  addKey(key: Omit<ApiKey, 'orgId'>): Promise<void>;
  findKey(keyId: string): Promise<ApiKey | null>;
  /** Returns the oldest first. */
  keysOf(organisation: OrganisationNumber): Promise<readonly ApiKey[]>;
  /**
   * Adds the successor, and notes it on the old key, which ends at the given moment or at its own end, whichever
   * is sooner. Returns false and changes nothing if the key has a successor already: of two calls at once, one wins.
   */
  replaceKey(keyId: string, endsAtMs: number, successor: Omit<ApiKey, 'orgId'>): Promise<boolean>;
  /** Keeps the first moment if the key was already revoked. */
  revokeKey(keyId: string, revokedAtMs: number): Promise<void>;
  /** Moves last-used times forward, never back. */
  noteKeysUsed(lastUsedAtMs: ReadonlyMap<string, number>): Promise<void>;
}

export interface RecordStore {
  /** Returns those of the ids that are records of the type, deleted ones included. */
  existing(
    organisation: OrganisationNumber,
    type: RecordTypeName,
    ids: readonly string[],
  ): Promise<ReadonlySet<string>>;
  /**
   * Upserts all batches in one transaction. A stored row stays if both it and the incoming one carry `updated` and the
   * incoming one is older, or if the two are identical.
   */
  write(upload: Upload): Promise<Written>;
  record(organisation: OrganisationNumber, type: RecordTypeName, id: string): Promise<Row | null>;
  /** Returns a page in the order of ids; a position is an id. */
  records(organisation: OrganisationNumber, type: RecordTypeName, page: RecordPage): Promise<Page<string>>;
}

export interface InteractionStore {
  writeInteraction(write: InteractionWrite): Promise<Written>;
  interaction(organisation: OrganisationNumber, interactionId: string): Promise<Row | null>;
  /** Returns a page, newest first: by `occurred_at`, then by id. */
  interactions(organisation: OrganisationNumber, page: InteractionPage): Promise<Page<InteractionPosition>>;
}

export interface IdempotencyStore {
  /** Returns what is kept under the key and has not expired by the given moment. */
  recall(key: MemoryKey, nowMs: number): Promise<Remembered | null>;
  /** Deletes what has expired by the given moment. */
  forgetExpired(nowMs: number): Promise<void>;
}
