// Reads what a replica copies from the store, part by part: all records, then the changes, and the ledger's entries.

import { type UploadTypeName, uploadTypeNames } from '@headgate/catalogue/record-types.ts';
import {
  type ChangePosition,
  type ColumnarRows,
  entryAt,
  everyEntry,
  type LedgerEntry,
  type LedgerStore,
  uploadStatusOf,
} from '../store/ledger.ts';
import type { OrganisationNumber } from '../store/rows.ts';
import { type ReplicaState, Unusable } from './replica-state.ts';
import { uploadsTable } from './replica-tables.ts';

const CHANGES_AT_ONCE = 10_000;
const ENTRIES_AT_ONCE = 1000;

/** Where a replica copies from. */
export interface Source {
  readonly store: LedgerStore;
  readonly organisation: OrganisationNumber;
}

/** Rows that are written together with the change of the state. */
export interface Part {
  readonly rows: readonly ColumnarRows[];
  readonly change: Partial<ReplicaState>;
}

/** Returns the records of all types, from a type and an id on. Only the last part, which says that all are read, may be empty. */
export async function* snapshotParts(
  source: Source,
  firstType: UploadTypeName,
  firstAfterId: string | null,
): AsyncGenerator<Part> {
  let type: UploadTypeName | null = firstType;
  let afterId = firstAfterId;
  while (type !== null) {
    const { rows, next } = await source.store.snapshot(source.organisation, type, afterId);
    afterId = next;
    if (next === null) type = uploadTypeNames[uploadTypeNames.indexOf(type) + 1] ?? null;
    if (rows.length > 0 || type === null) yield { rows, change: { type, afterId } };
  }
}

/** Returns the changes up to an entry. */
export async function* changeParts(
  source: Source,
  wantedSeq: number,
  firstAfter: ChangePosition,
): AsyncGenerator<Part> {
  for (let after = firstAfter, isLast = false; !isLast; ) {
    const page = { after, types: uploadTypeNames, limit: CHANGES_AT_ONCE };
    const read = await source.store.changedRows(source.organisation, page);
    if (read.kind === 'gone') throw new Unusable('the changes after it are not in the ledger');
    after = read.next;
    isLast = after.ids === null && after.seq >= Math.min(wantedSeq, read.latest);
    const entry = after.ids === null ? await entryAt(source.store, source.organisation, after.seq) : null;
    yield { rows: read.rows, change: { position: after, requestId: entry?.requestId ?? null } };
  }
}

/** Returns the entries after one up to another, as the columns of the table `uploads`. */
export async function* uploadParts(
  { store, organisation }: Source,
  afterSeq: number,
  lastSeq: number,
): AsyncGenerator<string[]> {
  for (let before: number | null = lastSeq + 1; before !== null && before > afterSeq + 1; ) {
    const { entries, next } = await store.entries(organisation, {
      ...everyEntry,
      before,
      limit: ENTRIES_AT_ONCE,
    });
    const added = entries.filter(({ seq }) => seq > afterSeq);
    if (added.length > 0) yield columnsOf(added);
    before = added.length < entries.length ? null : next;
  }
}

function columnsOf(entries: readonly LedgerEntry[]): string[] {
  const rows = entries.map((entry) => ({
    ...entry,
    request_id: entry.requestId,
    key_id: entry.keyId,
    received_at: new Date(entry.receivedAtMs).toISOString(),
    status: uploadStatusOf(entry),
  }));
  return uploadsTable.columns.map(({ name }) =>
    JSON.stringify(rows.map((row) => row[name as keyof typeof row])),
  );
}
