// The store interface for user interactions.

import type { ColumnValue } from '@headgate/catalogue/kinds/kind.ts';
import type { IdempotencyRecord, Written } from './idempotency-records.ts';
import type { EntryOrigin } from './ledger.ts';
import type { OrganisationNumber, Page, Row } from './rows.ts';

export interface InteractionWrite {
  readonly organisation: OrganisationNumber;
  /** The values in the order of the catalogue's `storedInteraction`. If null, only the idempotency record is stored. */
  readonly row: Row | null;
  readonly idempotencyRecord: IdempotencyRecord | null;
  /** Null if the ledger gets no entry, because the row is copied from a store that has one. */
  readonly entry: EntryOrigin | null;
}

export interface InteractionPage {
  /** The values, in stored form, that these declared fields must have. */
  readonly equal: Readonly<Record<string, ColumnValue>>;
  /** Bounds on `occurred_at`: `from` is included, `to` is not. */
  readonly from: string | null;
  readonly to: string | null;
  /** `next` of the previous page; null for the first page. */
  readonly before: InteractionPosition | null;
  /** The maximum number of rows. A page may have fewer. */
  readonly limit: number;
}

/** The position of an interaction in its organisation's list. The interaction may have been deleted since. */
export interface InteractionPosition {
  readonly occurredAt: string;
  readonly interactionId: string;
}

export interface InteractionStore {
  writeInteraction(write: InteractionWrite): Promise<Written>;
  interaction(organisation: OrganisationNumber, interactionId: string): Promise<Row | null>;
  /**
   * Returns a page, newest first by `occurred_at`. Interactions of the same time have a fixed order, which each store
   * chooses.
   */
  interactions(organisation: OrganisationNumber, page: InteractionPage): Promise<Page<InteractionPosition>>;
  countInteractions(organisation: OrganisationNumber): Promise<number>;
}
