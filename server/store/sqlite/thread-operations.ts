// Lists the operations of each thread of a SQLite store.

import type { DatabaseSync } from 'node:sqlite';
import { idempotencyLookUps, idempotencyWrites } from './idempotency-records.ts';
import { interactionLists, interactionLookUps, interactionWrites } from './interactions.ts';
import { keyLookUps, keyWrites } from './keys.ts';
import { createLedgerWriter, ledgerLists, ledgerLookUps, ledgerWrites } from './ledger.ts';
import { organisationLookUps, organisationWrites } from './organisations.ts';
import type { Steps } from './pages.ts';
import { recordLists, recordLookUps, recordWrites } from './records.ts';
import { segmentLists, segmentLookUps, segmentWrites } from './segments.ts';
import { preparer } from './statements.ts';
import type { Link } from './thread-calls.ts';
import { createUpserts } from './upserts.ts';

/** Returns the operations that read single rows and are short. */
export function createLookUps(database: DatabaseSync) {
  const prepare = preparer(database);
  return {
    ...organisationLookUps(prepare),
    ...keyLookUps(prepare),
    ...recordLookUps(prepare),
    ...interactionLookUps(prepare),
    ...idempotencyLookUps(prepare),
    ...ledgerLookUps(prepare),
    ...segmentLookUps(prepare),
  };
}

/** Returns the operations that may read many rows, and therefore run in steps. */
export function createLists(database: DatabaseSync) {
  const prepare = preparer(database);
  return {
    ...recordLists(prepare),
    ...interactionLists(prepare),
    ...ledgerLists(prepare),
    ...segmentLists(prepare),
  };
}

/**
 * Returns the operations that change the database. They run inside the writer's transaction, between the ledger's
 * `begin` and `end`.
 */
export function createWrites(database: DatabaseSync) {
  const prepare = preparer(database);
  const upserts = createUpserts(database);
  const ledger = createLedgerWriter(prepare);
  const writes = {
    ...organisationWrites(prepare),
    ...keyWrites(prepare),
    ...recordWrites(prepare, upserts, ledger),
    ...interactionWrites(prepare, upserts, ledger),
    ...idempotencyWrites(prepare),
    ...ledgerWrites(prepare, ledger),
    ...segmentWrites(prepare),
  };
  return { writes, ledger };
}

export type LookUps = ReturnType<typeof createLookUps>;
export type Lists = ReturnType<typeof createLists>;
export type Writes = ReturnType<typeof createWrites>['writes'];

type ListResults = {
  [N in keyof Lists]: (
    ...args: Parameters<Lists[N]>
  ) => ReturnType<Lists[N]> extends Steps<infer Result> ? Result : never;
};

/** The links from one user of the store to the store's threads. */
export interface Links {
  readonly writer: Link<Writes & { ping(): void }>;
  readonly reader: Link<LookUps>;
  readonly lister: Link<ListResults>;
}

/** How a store has its operations run, which need not be on threads of their own. */
export type Callers = { readonly [Name in keyof Links]: Pick<Links[Name], 'call'> };

/** The options for a call that belongs to no organisation. */
export const nobodys = { organisation: null };
