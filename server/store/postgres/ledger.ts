// Stores the ledger in PostgreSQL.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { presenters } from '@headgate/catalogue/presentation.ts';
import type { UploadTypeName } from '@headgate/catalogue/record-types.ts';
import {
  CHANGES_PAGE_ENTRIES,
  CHANGES_STEP_ENTRIES,
  type ChangedId,
  ChangedIds,
  ChangeLines,
  LINE_END,
  LINE_MIDDLE,
  lineStart,
  positionAfter,
  snapshotOf,
} from '../changed-ids.ts';
import { RowCollector, slicesByType } from '../columnar-rows.ts';
import {
  type ChangedRowsRead,
  type ChangesPage,
  type ChangesRead,
  COPIED_ENTRIES,
  type ColumnarRows,
  EXPIRED_ENTRIES_AT_ONCE,
  type LedgerBounds,
  type LedgerEntry,
  type LedgerStore,
  SNAPSHOT_IDS,
  type UploadEntry,
} from '../ledger.ts';
import {
  addUp,
  addUsageSql,
  afterCopySql,
  entryColumns,
  entryOf,
  entryValues,
  filterSql,
  listColumns,
  readColumns,
  USAGE_GROUP_ENTRIES,
  usageColumns,
  usageOf,
  usageSql,
  usageValues,
  writtenEntry,
} from '../ledger-table.ts';
import { ID_BYTES } from '../packed-ids.ts';
import { PageAccount, STEP_ENTRIES } from '../page-limits.ts';
import type { OrganisationNumber, Tally } from '../rows.ts';
import { catalogueTables, quoted, tableOf } from '../tables.ts';
import { bytesOfHex } from './codecs.ts';
import { callsOf, listsOf, upkeep } from './connection-slots.ts';
import type { Connections, Run, Statement } from './connections.ts';
import { columnsByKeys, rowsByKeys, sizesByKeys } from './pages.ts';

export interface AppendedEntry {
  readonly organisation: OrganisationNumber;
  readonly type: UploadTypeName;
  readonly entry: UploadEntry;
  readonly tally: Pick<Tally, 'created' | 'updated'>;
  readonly ids: readonly string[];
}

const selectEntrySql = `SELECT ${readColumns.join(', ')} FROM ledger_entries`;
/** How many records are read in one statement. */
const LOOKED_UP_AT_ONCE = 500;

const columnTypes: Readonly<Record<(typeof entryColumns)[number], string>> = {
  organisation: 'integer',
  seq: 'bigint',
  request_id: 'uuid',
  key_id: 'text',
  type: 'text',
  received_at_ms: 'bigint',
  ms: 'bigint',
  bytes: 'bigint',
  received: 'integer',
  created: 'integer',
  updated: 'integer',
  unchanged: 'integer',
  rejected: 'integer',
  causes: 'text',
  changed_ids: 'bytea',
};

/** Returns the SQL of entries as a table `added`. Each parameter, from `$first` on, is an array with a column's values. */
function addedSql(first: number): string {
  const arrays = entryColumns.map((column, at) => `$${first + at}::${columnTypes[column]}[]`);
  return `unnest(${arrays.join(', ')}) AS added (${entryColumns.join(', ')})`;
}

/**
 * Returns the statement that adds entries, after the rows of `insertion` if it is not null. Its parameters follow those
 * of the insertion. The `seq` of an entry is how many entries of its organisation follow it in the same statement.
 */
function appendSql(insertion: Statement | null): string {
  const first = (insertion?.values.length ?? 0) + 1;
  // A counter must not be locked before all rows are inserted, so they are counted first.
  const [inserted, whenInserted] =
    insertion === null
      ? ['', '']
      : [`inserted AS (${insertion.text}),`, 'WHERE (SELECT count(*) FROM inserted) > 0'];
  return `WITH ${inserted} counted AS (
    INSERT INTO ledgers AS stored (organisation, last_seq, ids_after_seq, entries_after_seq, kept_ids)
      SELECT organisation, entries, 0, 0, ids
        FROM unnest($${first}::integer[], $${first + 1}::bigint[], $${first + 2}::bigint[])
          AS sums (organisation, entries, ids)
        ${whenInserted}
      ON CONFLICT (organisation) DO UPDATE
        SET last_seq = stored.last_seq + excluded.last_seq, kept_ids = stored.kept_ids + excluded.kept_ids
      RETURNING organisation, last_seq
  )
  INSERT INTO ledger_entries (${entryColumns.join(', ')})
    SELECT ${entryColumns.map((column) => (column === 'seq' ? 'counted.last_seq - added.seq' : `added.${column}`)).join(', ')}
      FROM ${addedSql(first + 3)} JOIN counted ON counted.organisation = added.organisation
    RETURNING organisation, seq`;
}

/**
 * Adds the entries and returns their numbers. It must be called at the end of the transaction that writes what the
 * entries describe. The statement locks the organisations' counters until the commit, always in the same order. So
 * entries become visible in the order of their numbers, and transactions cannot deadlock. If `insertion` is not null, the
 * same statement first inserts its rows, which saves a round trip. The insertion must return something for each row.
 */
export async function appendEntries(
  run: Run,
  appended: readonly AppendedEntry[],
  insertion: Statement | null = null,
): Promise<readonly number[]> {
  if (appended.length === 0) return [];
  const sums = new Map<OrganisationNumber, { entries: number; ids: number }>();
  const rows = appended.toReversed().map(({ organisation, type, entry, tally, ids }) => {
    const behind = sums.get(organisation) ?? { entries: 0, ids: 0 };
    sums.set(organisation, { entries: behind.entries + 1, ids: behind.ids + ids.length });
    const idsHex = ids.length === 0 ? null : `\\x${ids.join('').replaceAll('-', '')}`;
    return [...entryValues(organisation, writtenEntry(entry, type, behind.entries, tally)), idsHex];
  });
  const sorted = [...sums].sort(([a], [b]) => a - b);
  const added = await run({
    name: insertion === null ? 'append entries' : `${insertion.name} and append entries`,
    text: appendSql(insertion),
    values: [
      ...(insertion?.values ?? []),
      sorted.map(([organisation]) => organisation),
      sorted.map(([, { entries }]) => entries),
      sorted.map(([, { ids }]) => ids),
      ...columnsOf(rows),
    ],
  });
  const next = new Map<OrganisationNumber, number>();
  for (const [organisation, seq] of added.map((row) => row.map(Number) as [OrganisationNumber, number])) {
    next.set(organisation, Math.min(seq, next.get(organisation) ?? seq));
  }
  const seqs = appended.map(({ organisation }) => {
    const seq = next.get(organisation)!;
    next.set(organisation, seq + 1);
    return seq;
  });
  for (const [position, seq] of seqs.entries()) {
    if (seq % USAGE_GROUP_ENTRIES === 0)
      await addUsage(run, appended[position]!.organisation, seq - USAGE_GROUP_ENTRIES, seq);
  }
  return seqs;
}

async function insertEntries(run: Run, rows: readonly unknown[][]): Promise<void> {
  if (rows.length === 0) return;
  const names = entryColumns.join(', ');
  await run({
    text: `INSERT INTO ledger_entries (${names}) SELECT ${names} FROM ${addedSql(1)}`,
    values: columnsOf(rows),
  });
}

function columnsOf(rows: readonly unknown[][]): unknown[][] {
  return entryColumns.map((_, at) => rows.map((row) => row[at]));
}

/** Adds the usage of the entries from after `afterSeq` to `lastSeq`. */
async function addUsage(
  run: Run,
  organisation: OrganisationNumber,
  afterSeq: number,
  lastSeq: number,
): Promise<void> {
  const text = addUsageSql(['$1', '$2', '$3']);
  await run({ name: 'add usage', text, values: [organisation, afterSeq, lastSeq] });
}

async function boundsOf(run: Run, organisation: OrganisationNumber): Promise<LedgerBounds> {
  const [row] = await run({
    name: 'bounds of ledger',
    text: 'SELECT last_seq, ids_after_seq, entries_after_seq FROM ledgers WHERE organisation = $1',
    values: [organisation],
  });
  const [lastSeq, idsAfterSeq, entriesAfterSeq] = (row ?? ['0', '0', '0']).map(Number);
  return { lastSeq: lastSeq!, idsAfterSeq: idsAfterSeq!, entriesAfterSeq: entriesAfterSeq! };
}

/** `isClosing` returns true once the store is being closed, which waits for running calls. */
export function ledgerStore(connections: Connections, isClosing: () => boolean): LedgerStore {
  const findEntry = async (
    organisation: OrganisationNumber,
    requestId: string,
  ): Promise<LedgerEntry | null> => {
    const [row] = await connections.for(callsOf(organisation)).run({
      name: 'entry of request',
      text: `${selectEntrySql} WHERE organisation = $1 AND request_id = $2`,
      values: [organisation, requestId],
    });
    return row === undefined ? null : entryOf(row);
  };

  return {
    async latestEntry(organisation) {
      return (await boundsOf(connections.for(callsOf(organisation)).run, organisation)).lastSeq;
    },

    entry: findEntry,

    async entryNumber(organisation, requestId) {
      return (await findEntry(organisation, requestId))?.seq ?? null;
    },

    async entries(organisation, page) {
      const { run } = connections.for(listsOf(organisation));
      const account = new PageAccount(page.limit);
      const entries: LedgerEntry[] = [];
      const { lastSeq, entriesAfterSeq } = await boundsOf(run, organisation);
      for (let before = page.before ?? lastSeq + 1; before > entriesAfterSeq + 1; ) {
        account.beginStep();
        // The numbers have no gaps, so a range of numbers limits how many entries a step reads.
        const first = Math.max(before - STEP_ENTRIES, entriesAfterSeq + 1);
        const values: unknown[] = [organisation, before, first, account.roomRows + 1];
        const conditions = filterSql(page, (value) => `$${values.push(value)}`);
        const found = await run({
          text: `SELECT ${listColumns.join(', ')} FROM ledger_entries WHERE organisation = $1 AND seq < $2 AND seq >= $3
            AND ${conditions.join(' AND ')} ORDER BY seq DESC LIMIT $4`,
          values,
        });
        for (const row of found) {
          const entry = entryOf(row);
          if (!account.take(JSON.stringify(entry))) return { entries, next: entries.at(-1)!.seq };
          entries.push(entry);
        }
        before = first;
        if (before <= entriesAfterSeq + 1) break;
        if (!account.endStep()) return { entries, next: before };
      }
      return { entries, next: null };
    },

    async changes(organisation, page): Promise<ChangesRead> {
      const { run } = connections.for(listsOf(organisation));
      const { ids, latest } = await changedIds(run, organisation, page);
      if (ids === null) return { kind: 'gone', latest };
      const { lines, cutAfter } = await linesOf(run, organisation, ids.inOrder());
      return { kind: 'changes', lines, next: positionAfter(ids, cutAfter), latest };
    },

    async changedRows(organisation, page): Promise<ChangedRowsRead> {
      const { run } = connections.for(listsOf(organisation));
      const { ids, latest } = await changedIds(run, organisation, page);
      if (ids === null) return { kind: 'gone', latest };
      const { rows, cutAfter } = await columnarRows(run, organisation, ids.inOrder());
      return { kind: 'rows', rows, next: positionAfter(ids, cutAfter), latest };
    },

    async snapshot(organisation, type, afterId) {
      const { run } = connections.for(listsOf(organisation));
      const { name, key } = tableOf(catalogueTables, type);
      const isAfter = afterId === null ? '' : `AND ${quoted(key)} > $2::uuid`;
      const found = await run({
        text: `SELECT ${quoted(key)} FROM ${quoted(name)} WHERE "organisation" = $1 ${isAfter}
          ORDER BY ${quoted(key)} LIMIT ${SNAPSHOT_IDS}`,
        values: afterId === null ? [organisation] : [organisation, afterId],
      });
      const ids = found.map(([id]) => id!);
      const { rows, cutAfter } = await columnarRows(run, organisation, snapshotOf(type, ids));
      const isLast = cutAfter === null && ids.length < SNAPSHOT_IDS;
      return { rows, next: isLast ? null : (cutAfter?.id ?? ids.at(-1)!) };
    },

    async usage(organisation, firstDay, lastDay) {
      const { run } = connections.for(listsOf(organisation));
      const values: unknown[] = [];
      const text = usageSql(organisation, firstDay, lastDay, (value) => `$${values.push(value)}`);
      return addUp((await run({ text, values })).map(usageOf));
    },

    async expireLedgers(idsBeforeMs, entriesBeforeMs) {
      const { run, transaction } = connections.for(upkeep);
      const ledgers = await run({ text: 'SELECT organisation FROM ledgers', values: [] });
      for (const [organisation] of ledgers) {
        const expire = (): Promise<boolean> =>
          transaction((session) =>
            expireSome(session.run, Number(organisation), idsBeforeMs, entriesBeforeMs),
          );
        while (!isClosing() && (await expire()));
      }
    },

    async ledgerSize() {
      const [row] = await connections.for(upkeep).run({
        text: `SELECT coalesce(sum(last_seq - entries_after_seq), 0), coalesce(sum(kept_ids), 0) FROM ledgers`,
        values: [],
      });
      return { entries: Number(row![0]), ids: Number(row![1]) };
    },

    async ledgerPart(organisation, afterSeq) {
      const { run } = connections.for(listsOf(organisation));
      const bounds = await boundsOf(run, organisation);
      const found = await run({
        text: `SELECT ${readColumns.join(', ')}, changed_ids FROM ledger_entries
          WHERE organisation = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT ${COPIED_ENTRIES}`,
        values: [organisation, afterSeq, bounds.lastSeq],
      });
      const entries = found.map((row) => {
        const ids = row.at(-1) as string | null;
        return { ...entryOf(row.slice(0, -1)), ids: ids === null ? new Uint8Array(0) : bytesOfHex(ids) };
      });
      const isLast = entries.length < COPIED_ENTRIES;
      const usageText = `SELECT ${usageColumns.join(', ')} FROM usage_days WHERE organisation = $1`;
      const usage = isLast ? await run({ text: usageText, values: [organisation] }) : [];
      const lastSeq = isLast ? bounds.lastSeq : entries.at(-1)!.seq;
      return { ...bounds, lastSeq, entries, usage: usage.map(usageOf), isLast };
    },

    addLedgerPart: (organisation, { entries, usage, isLast, lastSeq, idsAfterSeq, entriesAfterSeq }) =>
      connections.for(callsOf(organisation)).transaction(async ({ run }) => {
        const present = await boundsOf(run, organisation);
        const missing = entries.filter(({ seq }) => seq > present.lastSeq);
        await insertEntries(
          run,
          missing.map(({ ids, ...entry }) => [
            ...entryValues(organisation, entry),
            ids.length === 0 ? null : Buffer.from(ids),
          ]),
        );
        for (const sums of usage) {
          const sets = usageColumns.slice(3).map((column) => `${column} = excluded.${column}`);
          await run({
            text: `INSERT INTO usage_days (organisation, ${usageColumns.join(', ')})
              VALUES ($1, ${usageColumns.map((_, at) => `$${at + 2}`).join(', ')})
              ON CONFLICT (organisation, day, type, key_id) DO UPDATE SET ${sets.join(', ')}`,
            values: [organisation, ...usageValues(sums)],
          });
        }
        await run({
          text: `INSERT INTO ledgers AS stored (organisation, last_seq, ids_after_seq, entries_after_seq, kept_ids)
            VALUES ($1, $2, $3, $4, 0)
            ON CONFLICT (organisation) DO UPDATE SET last_seq = greatest(stored.last_seq, excluded.last_seq),
              ids_after_seq = greatest(stored.ids_after_seq, excluded.ids_after_seq),
              entries_after_seq = greatest(stored.entries_after_seq, excluded.entries_after_seq)`,
          values: [organisation, lastSeq, idsAfterSeq, entriesAfterSeq],
        });
        if (isLast) for (const text of afterCopySql('$1')) await run({ text, values: [organisation] });
      }),
  };
}

/** Collects the ids of a page of changes, or returns null if the ledger does not contain its position. */
async function changedIds(
  run: Run,
  organisation: OrganisationNumber,
  { after, types, limit }: ChangesPage,
): Promise<{ readonly ids: ChangedIds | null; readonly latest: number }> {
  const { lastSeq: latest, idsAfterSeq } = await boundsOf(run, organisation);
  const ids = new ChangedIds(after, limit);
  const firstSeq = ids.nextSeq;
  if (firstSeq <= idsAfterSeq || after.seq > latest) return { ids: null, latest };
  const last = Math.min(latest, firstSeq + CHANGES_PAGE_ENTRIES - 1);
  while (ids.nextSeq <= last && !ids.isFull) await readEntries(run, organisation, types, ids, last);
  // Ids may have expired while the entries were read.
  const isGone = firstSeq <= (await boundsOf(run, organisation)).idsAfterSeq;
  return { ids: isGone ? null : ids, latest };
}

/** Returns the rows of the changes. If not all of them fit into a page, `cutAfter` is the last one that does. */
async function columnarRows(
  run: Run,
  organisation: OrganisationNumber,
  changes: readonly ChangedId[],
): Promise<{ readonly rows: readonly ColumnarRows[]; readonly cutAfter: ChangedId | null }> {
  const collector = new RowCollector();
  for (let first = 0; first < changes.length; ) {
    const some = await fitting(run, organisation, changes.slice(first, first + LOOKED_UP_AT_ONCE));
    for (const { types, last } of slicesByType(some, LOOKED_UP_AT_ONCE)) {
      for (const [type, ids] of types) {
        const table = tableOf(catalogueTables, type);
        const columns = await columnsByKeys(run, table, organisation, ids);
        collector.add(type, JSON.stringify(ids), columns);
      }
      if (collector.isFull) return { rows: collector.rows(), cutAfter: last };
    }
    first += some.length;
  }
  return { rows: collector.rows(), cutAfter: null };
}

/** Adds the ids of the next entries, in one step. */
async function readEntries(
  run: Run,
  organisation: OrganisationNumber,
  types: readonly UploadTypeName[],
  ids: ChangedIds,
  lastSeq: number,
): Promise<void> {
  // Reads few entries at once, because the ids of an entry take up to 80 KB.
  const stepEnd = Math.min(lastSeq, ids.nextSeq + CHANGES_STEP_ENTRIES - 1);
  const found = await run({
    name: 'changed ids',
    text: `SELECT seq, type, changed_ids FROM ledger_entries
      WHERE organisation = $1 AND seq >= $2 AND seq <= $3 AND type = ANY ($4) AND changed_ids IS NOT NULL
      ORDER BY seq LIMIT ${ENTRIES_AT_ONCE}`,
    values: [organisation, ids.nextSeq, stepEnd, types],
  });
  for (const [seq, type, packed] of found) {
    if (!ids.addEntry(Number(seq), type as UploadTypeName, bytesOfHex(packed!))) return;
  }
  if (found.length < ENTRIES_AT_ONCE) ids.markReadTo(stepEnd);
}

/** How many entries with ids are read in one statement. */
const ENTRIES_AT_ONCE = 50;

/**
 * After this many characters, which take about 2 ms, the thread does other work: a serving thread makes its pages of
 * changes itself.
 */
const LINES_STEP_CHARACTERS = 256 * 1024;

/** Returns the lines of the changes. If not all of them fit into a page, `cutAfter` is the last one that does. */
async function linesOf(
  run: Run,
  organisation: OrganisationNumber,
  changes: readonly ChangedId[],
): Promise<{ readonly lines: Uint8Array<ArrayBuffer>; readonly cutAfter: ChangedId | null }> {
  const lines = new ChangeLines();
  for (let first = 0; first < changes.length; ) {
    const some = await fitting(run, organisation, changes.slice(first, first + LOOKED_UP_AT_ONCE));
    const rows = await lookUp(some, (type, ids) =>
      rowsByKeys(run, tableOf(catalogueTables, type), organisation, ids),
    );
    let text = '';
    let stepFirst = 0;
    for (const [position, changed] of some.entries()) {
      const row = rows.get(changed);
      const recordJson = row === undefined ? 'null' : JSON.stringify(presenters[changed.type](row));
      text += `${lineStart(changed)}${changed.id}${LINE_MIDDLE}${recordJson}${LINE_END}`;
      const stepEnd = position + 1;
      if (text.length < LINES_STEP_CHARACTERS && stepEnd < some.length) continue;
      const isAdded = lines.add(Buffer.from(text), some.slice(stepFirst, stepEnd));
      if (!isAdded) return { lines: lines.bytes(), cutAfter: lines.last };
      text = '';
      stepFirst = stepEnd;
      await nextTurn();
    }
    first += some.length;
  }
  return { lines: lines.bytes(), cutAfter: null };
}

/**
 * The approximate limit for the records that are read at once, in bytes. Escapes can make their JSON six times as long,
 * so that a page may have no room for most of them.
 */
const READ_AT_ONCE_BYTES = 1024 * 1024;

/** Returns the first changes whose records are read at once, and at least one change. */
async function fitting(
  run: Run,
  organisation: OrganisationNumber,
  changes: readonly ChangedId[],
): Promise<readonly ChangedId[]> {
  const sizes = await lookUp(changes, (type, ids) =>
    sizesByKeys(run, tableOf(catalogueTables, type), organisation, ids),
  );
  let bytes = 0;
  const end = changes.findIndex((changed, position) => {
    bytes += sizes.get(changed) ?? 0;
    return bytes > READ_AT_ONCE_BYTES && position > 0;
  });
  return end === -1 ? changes : changes.slice(0, end);
}

/** Looks the ids of the changes up, type by type. */
async function lookUp<Found>(
  changes: readonly ChangedId[],
  find: (type: UploadTypeName, ids: readonly string[]) => Promise<ReadonlyMap<string, Found>>,
): Promise<ReadonlyMap<ChangedId, Found>> {
  const found = new Map<ChangedId, Found>();
  for (const [type, ofType] of Map.groupBy(changes, (changed) => changed.type)) {
    const byId = await find(
      type,
      ofType.map(({ id }) => id),
    );
    for (const changed of ofType) {
      const value = byId.get(changed.id);
      if (value !== undefined) found.set(changed, value);
    }
  }
  return found;
}

/** Deletes some expired ids and entries of an organisation. Returns true if more may be left. */
async function expireSome(
  run: Run,
  organisation: OrganisationNumber,
  idsBeforeMs: number,
  entriesBeforeMs: number,
): Promise<boolean> {
  const { idsAfterSeq, entriesAfterSeq } = await boundsOf(run, organisation);
  const lastBefore = async (afterSeq: number, beforeMs: number): Promise<number> => {
    const found = await run({
      text: `SELECT seq, received_at_ms FROM ledger_entries WHERE organisation = $1 AND seq > $2
        ORDER BY seq LIMIT ${EXPIRED_ENTRIES_AT_ONCE}`,
      values: [organisation, afterSeq],
    });
    const firstKept = found.findIndex(([, receivedAtMs]) => Number(receivedAtMs) >= beforeMs);
    const expired = firstKept === -1 ? found : found.slice(0, firstKept);
    return Number(expired.at(-1)?.[0] ?? afterSeq);
  };
  const idsEnd = await lastBefore(idsAfterSeq, Math.max(idsBeforeMs, entriesBeforeMs));
  const end = Math.min(idsEnd, await lastBefore(entriesAfterSeq, entriesBeforeMs));
  if (idsEnd === idsAfterSeq && end <= entriesAfterSeq) return false;
  // Locks the counter and checks that no other process has deleted anything meanwhile. Uploads may have been added, so
  // the number of the last entry is known only now.
  const [locked] = await run({
    text: `UPDATE ledgers SET ids_after_seq = $2, entries_after_seq = greatest(entries_after_seq, $3)
      WHERE organisation = $1 AND ids_after_seq = $4 AND entries_after_seq = $5 RETURNING last_seq`,
    values: [organisation, idsEnd, end, idsAfterSeq, entriesAfterSeq],
  });
  if (locked === undefined) return true;
  const expired = 'organisation = $1 AND seq > $2 AND seq <= $3';
  const [freed] = await run({
    text: `SELECT coalesce(sum(length(changed_ids)), 0) FROM ledger_entries WHERE ${expired}`,
    values: [organisation, idsAfterSeq, idsEnd],
  });
  await run({
    text: `UPDATE ledger_entries SET changed_ids = NULL WHERE ${expired} AND changed_ids IS NOT NULL`,
    values: [organisation, idsAfterSeq, idsEnd],
  });
  const lastSeq = Number(locked[0]);
  const addedUpTo = lastSeq - (lastSeq % USAGE_GROUP_ENTRIES);
  if (end > addedUpTo) await addUsage(run, organisation, Math.max(entriesAfterSeq, addedUpTo), end);
  await run({
    text: `DELETE FROM ledger_entries WHERE ${expired}`,
    values: [organisation, entriesAfterSeq, end],
  });
  await run({
    text: 'UPDATE ledgers SET kept_ids = kept_ids - $2 WHERE organisation = $1',
    values: [organisation, Number(freed![0]) / ID_BYTES],
  });
  return true;
}
