// Stores the ledger in SQLite.

import type { SQLInputValue, SQLOutputValue } from 'node:sqlite';
import { INTERACTIONS, type UploadTypeName, uploadTypeNames } from '@headgate/catalogue/record-types.ts';
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
  runsOfOneEntry,
} from '../changed-ids.ts';
import { RowCollector, slicesByType } from '../columnar-rows.ts';
import {
  type ChangedRowsRead,
  type ChangesPage,
  type ChangesRead,
  COPIED_ENTRIES,
  type ColumnarRows,
  type EntriesRead,
  type EntryOrigin,
  type EntryPage,
  EXPIRED_ENTRIES_AT_ONCE,
  type LedgerBounds,
  type LedgerEntry,
  type LedgerPart,
  type LedgerSize,
  type LedgerStore,
  SNAPSHOT_IDS,
  type SnapshotPart,
  type UploadEntry,
  type Usage,
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
import { ID_BYTES, packIds } from '../packed-ids.ts';
import { PageAccount, STEP_ENTRIES } from '../page-limits.ts';
import type { OrganisationNumber, Tally } from '../rows.ts';
import { catalogueTables, quoted, type Table, tableOf } from '../tables.ts';
import { codecs } from './codecs.ts';
import type { Steps } from './pages.ts';
import { arraysOf, type Prepare } from './statements.ts';
import { type Callers, nobodys } from './thread-operations.ts';

const insertEntrySql = `INSERT INTO ledger_entries (${entryColumns.join(', ')})
  VALUES (${entryColumns.map(() => '?').join(', ')})`;
/** How many records of a page are read before other calls get their turn. */
const LOOK_UPS_PER_STEP = 500;
/** How many rows SQLite puts together. Few, because records may have megabytes of text. */
const ROWS_AT_ONCE = 100;
const BYTES_PER_ENTRY = 500;
/** How many bytes of ids a step of an expiry deletes, because other writes wait for the step. */
const EXPIRED_BYTES_AT_ONCE = 256 * 1024;

function boundsOf(prepare: Prepare, organisation: OrganisationNumber): LedgerBounds {
  const row = prepare(
    'SELECT last_seq, ids_after_seq, entries_after_seq FROM ledgers WHERE organisation = ?',
  ).get(organisation);
  return {
    lastSeq: Number(row?.last_seq ?? 0),
    idsAfterSeq: Number(row?.ids_after_seq ?? 0),
    entriesAfterSeq: Number(row?.entries_after_seq ?? 0),
  };
}

export function ledgerLookUps(prepare: Prepare) {
  return {
    latestEntry: (organisation: OrganisationNumber): number => boundsOf(prepare, organisation).lastSeq,

    entry(organisation: OrganisationNumber, requestId: string): LedgerEntry | null {
      const sql = `SELECT ${readColumns.join(', ')} FROM ledger_entries WHERE organisation = ? AND request_id = ?`;
      const [row] = arraysOf(prepare, sql, [organisation, requestId]);
      return row === undefined ? null : entryOf(row);
    },

    /** Returns the organisations whose ledger has ids or entries that are older than the given times. */
    expiredLedgers(idsBeforeMs: number, entriesBeforeMs: number): readonly OrganisationNumber[] {
      const receivedAt = (afterSeq: string): string => `(SELECT received_at_ms FROM ledger_entries
        WHERE ledger_entries.organisation = ledgers.organisation AND seq = ${afterSeq} + 1)`;
      return prepare(
        `SELECT organisation FROM ledgers
          WHERE ${receivedAt('ids_after_seq')} < ? OR ${receivedAt('entries_after_seq')} < ?`,
      )
        .all(Math.max(idsBeforeMs, entriesBeforeMs), entriesBeforeMs)
        .map(({ organisation }) => Number(organisation));
    },

    ledgerSize(): LedgerSize {
      const row = prepare(
        'SELECT sum(last_seq - entries_after_seq) AS entries, sum(kept_ids) AS ids FROM ledgers',
      ).get();
      return { entries: Number(row?.entries ?? 0), ids: Number(row?.ids ?? 0) };
    },
  };
}

export function ledgerLists(prepare: Prepare) {
  return {
    *entries(organisation: OrganisationNumber, page: EntryPage): Steps<EntriesRead> {
      const account = new PageAccount(page.limit);
      const entries: LedgerEntry[] = [];
      const { lastSeq, entriesAfterSeq } = boundsOf(prepare, organisation);
      for (let before = page.before ?? lastSeq + 1; before > entriesAfterSeq + 1; ) {
        account.beginStep();
        // The numbers have no gaps, so a range of numbers limits how many entries a step reads.
        const first = Math.max(before - STEP_ENTRIES, entriesAfterSeq + 1);
        const values: SQLInputValue[] = [organisation, before, first];
        const conditions = filterSql(page, (value) => {
          values.push(value);
          return '?';
        });
        const sql = `SELECT ${listColumns.join(', ')} FROM ledger_entries WHERE organisation = ? AND seq < ? AND seq >= ?
          AND ${conditions.join(' AND ')} ORDER BY seq DESC`;
        for (const row of arraysOf(prepare, sql, values)) {
          const entry = entryOf(row);
          if (!account.take(JSON.stringify(entry))) return { entries, next: entries.at(-1)!.seq };
          entries.push(entry);
        }
        before = first;
        if (before <= entriesAfterSeq + 1) break;
        if (!account.endStep()) return { entries, next: before };
        yield;
      }
      return { entries, next: null };
    },

    *changes(organisation: OrganisationNumber, page: ChangesPage): Steps<ChangesRead> {
      const { ids, latest } = yield* changedIds(prepare, organisation, page);
      if (ids === null) return { kind: 'gone', latest };
      const { lines, cutAfter } = yield* linesOf(prepare, organisation, ids.inOrder());
      return { kind: 'changes', lines, next: positionAfter(ids, cutAfter), latest };
    },

    *changedRows(organisation: OrganisationNumber, page: ChangesPage): Steps<ChangedRowsRead> {
      const { ids, latest } = yield* changedIds(prepare, organisation, page);
      if (ids === null) return { kind: 'gone', latest };
      const { rows, cutAfter } = yield* columnarRows(prepare, organisation, ids.inOrder());
      return { kind: 'rows', rows, next: positionAfter(ids, cutAfter), latest };
    },

    *snapshot(
      organisation: OrganisationNumber,
      type: UploadTypeName,
      afterId: string | null,
    ): Steps<SnapshotPart> {
      const table = tableOf(catalogueTables, type);
      const keyColumn = table.columns.findIndex(({ name }) => name === table.key);
      const select = prepare(partSql(table));
      select.setReturnArrays(true);
      const collector = new RowCollector();
      let last = afterId ?? '';
      for (let read = 0; read < SNAPSHOT_IDS && !collector.isFull; read += ROWS_AT_ONCE) {
        if (read > 0 && read % LOOK_UPS_PER_STEP === 0) yield;
        const found = select.get(organisation, last) as unknown as [number, string | null, ...string[]];
        const [count, lastFound, ...columnsJson] = found;
        if (count > 0) collector.add(type, columnsJson[keyColumn]!, columnsJson);
        if (count < ROWS_AT_ONCE) return { rows: collector.rows(), next: null };
        last = lastFound!;
      }
      return { rows: collector.rows(), next: last };
    },

    *usage(organisation: OrganisationNumber, firstDay: string, lastDay: string): Steps<readonly Usage[]> {
      // Lets other calls go first, because a year of many keys has thousands of rows.
      yield;
      const values: SQLInputValue[] = [];
      const sql = usageSql(organisation, firstDay, lastDay, (value) => {
        values.push(value);
        return '?';
      });
      return addUp(Array.from(arraysOf(prepare, sql, values), usageOf));
    },

    *ledgerPart(organisation: OrganisationNumber, afterSeq: number): Steps<LedgerPart> {
      const bounds = boundsOf(prepare, organisation);
      const sql = `SELECT ${readColumns.join(', ')}, changed_ids FROM ledger_entries
        WHERE organisation = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ${COPIED_ENTRIES}`;
      const entries = [...arraysOf(prepare, sql, [organisation, afterSeq, bounds.lastSeq])].map((row) => ({
        ...entryOf(row.slice(0, -1)),
        ids: (row.at(-1) as Uint8Array | null) ?? new Uint8Array(0),
      }));
      yield;
      const isLast = entries.length < COPIED_ENTRIES;
      const daysSql = `SELECT ${usageColumns.join(', ')} FROM usage_days WHERE organisation = ?`;
      const usage = isLast ? Array.from(arraysOf(prepare, daysSql, [organisation]), usageOf) : [];
      const lastSeq = isLast ? bounds.lastSeq : entries.at(-1)!.seq;
      return { ...bounds, lastSeq, entries, usage, isLast };
    },
  };
}

/** Collects the ids of a page of changes, or returns null if the ledger does not contain its position. */
function* changedIds(
  prepare: Prepare,
  organisation: OrganisationNumber,
  { after, types, limit }: ChangesPage,
): Steps<{ readonly ids: ChangedIds | null; readonly latest: number }> {
  const { lastSeq: latest, idsAfterSeq } = boundsOf(prepare, organisation);
  const ids = new ChangedIds(after, limit);
  const firstSeq = ids.nextSeq;
  if (firstSeq <= idsAfterSeq || after.seq > latest) return { ids: null, latest };
  const last = Math.min(latest, firstSeq + CHANGES_PAGE_ENTRIES - 1);
  const sql = `SELECT seq, type, changed_ids FROM ledger_entries
    WHERE organisation = ? AND seq >= ? AND seq <= ? AND type IN (${types.map(() => '?').join(', ')})
      AND changed_ids IS NOT NULL ORDER BY seq`;
  while (ids.nextSeq <= last && !ids.isFull) {
    const stepEnd = Math.min(last, ids.nextSeq + CHANGES_STEP_ENTRIES - 1);
    if (addEntries(arraysOf(prepare, sql, [organisation, ids.nextSeq, stepEnd, ...types]), ids))
      ids.markReadTo(stepEnd);
    if (ids.nextSeq <= last && !ids.isFull) yield;
  }
  // Ids may have expired while the entries were read.
  const isGone = firstSeq <= boundsOf(prepare, organisation).idsAfterSeq;
  return { ids: isGone ? null : ids, latest };
}

function columnArraysSql(columns: Table['columns']): string {
  const array = ({ name, kind }: Table['columns'][number]): string =>
    `json_group_array(${codecs[kind].jsonSql(`stored.${quoted(name)}`)})`;
  return columns.map(array).join(', ');
}

/** Returns the statement that reads rows after an id: their number, the last id, and the columns. */
function partSql({ name, key, columns }: Table): string {
  return `SELECT count(*), max(${quoted(key)}), ${columnArraysSql(columns)} FROM (
    SELECT * FROM ${quoted(name)} WHERE organisation = ?1 AND ${quoted(key)} > ?2
      ORDER BY ${quoted(key)} LIMIT ${ROWS_AT_ONCE}) AS stored`;
}

/**
 * Returns the condition that joins the stored row of each wanted id. Rows that were created together have consecutive
 * rowids, so the third id of the list is expected two rows after the first id, for example. If its row is not there, it
 * is looked up by its key, which takes twice as long.
 */
function isWantedSql({ name, key }: Table): string {
  const rowidSql = (alias: string, conditions: string): string =>
    `(SELECT ${alias}.rowid FROM ${quoted(name)} AS ${alias} WHERE ${conditions})`;
  const hasId = (alias: string, id: string): string =>
    `${alias}.organisation = ?1 AND ${alias}.${quoted(key)} = ${id}`;
  const first = rowidSql('first', hasId('first', '?2 ->> 0'));
  const expected = rowidSql(
    'expected',
    `expected.rowid = ${first} + wanted.key AND ${hasId('expected', 'wanted.value')}`,
  );
  const found = rowidSql('found', hasId('found', 'wanted.value'));
  return `stored.rowid = coalesce(${expected}, ${found})`;
}

/** Returns the statement that reads rows column by column. Its parameters are the organisation and the ids. */
function columnsSql(table: Table): string {
  // CROSS JOIN makes SQLite look the ids up, instead of searching among them for every stored row.
  return `SELECT ${columnArraysSql(table.columns)} FROM json_each(?2) AS wanted
    CROSS JOIN ${quoted(table.name)} AS stored ON ${isWantedSql(table)}`;
}

const columnStatements = new Map(
  uploadTypeNames.map((type) => [type, columnsSql(tableOf(catalogueTables, type))]),
);

/** Returns the rows of the changes. If not all of them fit into a page, `cutAfter` is the last one that does. */
function* columnarRows(
  prepare: Prepare,
  organisation: OrganisationNumber,
  changes: readonly ChangedId[],
): Steps<{ readonly rows: readonly ColumnarRows[]; readonly cutAfter: ChangedId | null }> {
  const collector = new RowCollector();
  let sinceStep = 0;
  for (const { types, last } of slicesByType(changes, ROWS_AT_ONCE)) {
    for (const [type, ids] of types) {
      const select = prepare(columnStatements.get(type)!);
      select.setReturnArrays(true);
      const idsJson = JSON.stringify(ids);
      collector.add(type, idsJson, select.get(organisation, idsJson) as unknown as readonly string[]);
    }
    if (collector.isFull) return { rows: collector.rows(), cutAfter: last };
    sinceStep += ROWS_AT_ONCE;
    if (sinceStep < LOOK_UPS_PER_STEP) continue;
    sinceStep = 0;
    yield;
  }
  return { rows: collector.rows(), cutAfter: null };
}

/** Returns the statement that writes the lines of changes. Its parameters are the organisation, the ids, and `lineStart`. */
function linesSql(table: Table): string {
  const members = table.columns.map(
    (column) => `'${column.name}', ${codecs[column.kind].shownJsonSql(`stored.${quoted(column.name)}`)}`,
  );
  return `SELECT CAST(group_concat(?3 || wanted.value || '${LINE_MIDDLE}' ||
        iif(stored.rowid IS NULL, 'null', json_object(${members.join(', ')})) || '${LINE_END}', '') AS BLOB)
      FROM json_each(?2) AS wanted
      LEFT JOIN ${quoted(table.name)} AS stored ON ${isWantedSql(table)}`;
}

const lineStatements = new Map(
  uploadTypeNames.map((type) => [type, linesSql(tableOf(catalogueTables, type))]),
);

/**
 * Returns the lines of the changes. If not all of them fit into a page, `cutAfter` is the last one that does. SQLite
 * finds the records and writes the lines, which takes half the time of reading the rows and writing the lines here.
 */
function* linesOf(
  prepare: Prepare,
  organisation: OrganisationNumber,
  changes: readonly ChangedId[],
): Steps<{ readonly lines: Uint8Array<ArrayBuffer>; readonly cutAfter: ChangedId | null }> {
  const lines = new ChangeLines();
  let sinceStep = 0;
  for (const run of runsOfOneEntry(changes, ROWS_AT_ONCE)) {
    sinceStep += run.length;
    if (sinceStep > LOOK_UPS_PER_STEP) {
      sinceStep = run.length;
      yield;
    }
    const [first] = run as [ChangedId];
    const ids = JSON.stringify(run.map(({ id }) => id));
    const select = prepare(lineStatements.get(first.type)!);
    select.setReturnArrays(true);
    const [written] = select.get(organisation, ids, lineStart(first)) as unknown as [Uint8Array];
    if (!lines.add(written, run)) return { lines: lines.bytes(), cutAfter: lines.last };
  }
  return { lines: lines.bytes(), cutAfter: null };
}

/** Returns false if the page is full before all entries have been added. */
function addEntries(rows: Iterable<SQLOutputValue[]>, ids: ChangedIds): boolean {
  for (const [seq, type, packed] of rows) {
    if (!ids.addEntry(Number(seq), type as UploadTypeName, packed as Uint8Array)) return false;
  }
  return true;
}

/** The single interactions of one key in the current transaction. */
interface InteractionGroup extends EntryOrigin {
  readonly organisation: OrganisationNumber;
  readonly ids: string[];
  bytes: number;
}

export type LedgerWriter = ReturnType<typeof createLedgerWriter>;

/** The number of a ledger's last entry, and how many ids the current transaction has added. */
interface Counter {
  lastSeq: number;
  addedIds: number;
}

/** Adds entries to the ledgers. The writer calls `begin` and `end` in every transaction. */
export function createLedgerWriter(prepare: Prepare) {
  /** By the id of the key. */
  const groups = new Map<string, InteractionGroup>();
  /** The counters are written once per transaction, because it may contain hundreds of uploads of an organisation. */
  const counters = new Map<OrganisationNumber, Counter>();

  const counterOf = (organisation: OrganisationNumber): Counter => {
    const known = counters.get(organisation);
    if (known !== undefined) return known;
    const counter = { lastSeq: boundsOf(prepare, organisation).lastSeq, addedIds: 0 };
    counters.set(organisation, counter);
    return counter;
  };

  const append = (
    organisation: OrganisationNumber,
    type: UploadTypeName,
    entry: UploadEntry,
    tally: Pick<Tally, 'created' | 'updated'>,
    ids: readonly string[],
  ): number => {
    const counter = counterOf(organisation);
    const seq = ++counter.lastSeq;
    counter.addedIds += ids.length;
    insertEntry(prepare, organisation, writtenEntry(entry, type, seq, tally), packIds(ids));
    if (seq % USAGE_GROUP_ENTRIES === 0) addUsage(prepare, organisation, seq - USAGE_GROUP_ENTRIES, seq);
    return seq;
  };

  const writeCounters = (): void => {
    for (const [organisation, { lastSeq, addedIds }] of counters) {
      prepare(
        `INSERT INTO ledgers (organisation, last_seq, ids_after_seq, entries_after_seq, kept_ids)
          VALUES (?, ?, 0, 0, ?)
          ON CONFLICT (organisation) DO UPDATE
            SET last_seq = excluded.last_seq, kept_ids = kept_ids + excluded.kept_ids`,
      ).run(organisation, lastSeq, addedIds);
    }
    counters.clear();
  };

  return {
    begin(): void {
      groups.clear();
      counters.clear();
    },

    /** Adds the entries of the transaction's single interactions, and writes the counters. */
    end(): void {
      for (const { organisation, ids, ...origin } of groups.values()) {
        const entry = { ...origin, received: ids.length, rejected: 0, causesJson: null };
        append(organisation, INTERACTIONS, entry, { created: ids.length, updated: 0 }, ids);
      }
      writeCounters();
    },

    writeCounters,

    addUpload: append,

    addInteraction(organisation: OrganisationNumber, origin: EntryOrigin, id: string): void {
      const group = groups.get(origin.keyId);
      if (group === undefined) groups.set(origin.keyId, { ...origin, organisation, ids: [id] });
      else {
        group.ids.push(id);
        group.bytes += origin.bytes;
      }
    },
  };
}

function insertEntry(
  prepare: Prepare,
  organisation: OrganisationNumber,
  entry: LedgerEntry,
  ids: Uint8Array,
): void {
  prepare(insertEntrySql).run(...entryValues(organisation, entry), ids.length === 0 ? null : ids);
}

/** Adds the usage of the entries from after `afterSeq` to `lastSeq`. */
function addUsage(
  prepare: Prepare,
  organisation: OrganisationNumber,
  afterSeq: number,
  lastSeq: number,
): void {
  prepare(addUsageSql(['?', '?', '?'])).run(organisation, afterSeq, lastSeq);
}

export function ledgerWrites(prepare: Prepare, { writeCounters }: LedgerWriter) {
  /** Returns the number of the last expired entry of the next step, or `afterSeq` if no entry has expired. */
  const lastBefore = (organisation: OrganisationNumber, afterSeq: number, beforeMs: number): number => {
    const sql = `SELECT seq, received_at_ms, length(changed_ids) FROM ledger_entries WHERE organisation = ? AND seq > ?
      ORDER BY seq LIMIT ${EXPIRED_ENTRIES_AT_ONCE}`;
    let last = afterSeq;
    let bytes = 0;
    for (const [seq, receivedAtMs, idBytes] of arraysOf(prepare, sql, [organisation, afterSeq])) {
      bytes += Number(idBytes ?? 0);
      if (Number(receivedAtMs) >= beforeMs || (bytes > EXPIRED_BYTES_AT_ONCE && last > afterSeq)) break;
      last = Number(seq);
    }
    return last;
  };

  return {
    /** Deletes some expired ids and entries. Returns true if more may be left; the caller then calls it again. */
    expireLedger(organisation: OrganisationNumber, idsBeforeMs: number, entriesBeforeMs: number): boolean {
      writeCounters();
      const { lastSeq, idsAfterSeq, entriesAfterSeq } = boundsOf(prepare, organisation);
      const idsEnd = lastBefore(organisation, idsAfterSeq, Math.max(idsBeforeMs, entriesBeforeMs));
      const isExpired = 'organisation = ? AND seq > ? AND seq <= ?';
      const freed = prepare(
        `SELECT coalesce(sum(length(changed_ids)), 0) AS bytes FROM ledger_entries WHERE ${isExpired}`,
      ).get(organisation, idsAfterSeq, idsEnd);
      prepare(`UPDATE ledger_entries SET changed_ids = NULL WHERE ${isExpired}`).run(
        organisation,
        idsAfterSeq,
        idsEnd,
      );
      const end = Math.min(idsEnd, lastBefore(organisation, entriesAfterSeq, entriesBeforeMs));
      const addedUpTo = lastSeq - (lastSeq % USAGE_GROUP_ENTRIES);
      if (end > addedUpTo) addUsage(prepare, organisation, Math.max(entriesAfterSeq, addedUpTo), end);
      prepare(`DELETE FROM ledger_entries WHERE ${isExpired}`).run(organisation, entriesAfterSeq, end);
      prepare(
        `UPDATE ledgers SET ids_after_seq = ?, entries_after_seq = max(entries_after_seq, ?), kept_ids = kept_ids - ?
          WHERE organisation = ?`,
      ).run(idsEnd, end, Number(freed!.bytes) / ID_BYTES, organisation);
      return idsEnd > idsAfterSeq || end > entriesAfterSeq;
    },

    addLedgerPart(organisation: OrganisationNumber, { entries, usage, isLast, ...bounds }: LedgerPart): void {
      writeCounters();
      const { lastSeq } = boundsOf(prepare, organisation);
      for (const { ids, ...entry } of entries) {
        if (entry.seq > lastSeq) insertEntry(prepare, organisation, entry, ids);
      }
      prepare(
        `INSERT INTO ledgers (organisation, last_seq, ids_after_seq, entries_after_seq, kept_ids)
          VALUES (?, ?, ?, ?, 0)
          ON CONFLICT (organisation) DO UPDATE SET last_seq = max(last_seq, excluded.last_seq),
            ids_after_seq = max(ids_after_seq, excluded.ids_after_seq),
            entries_after_seq = max(entries_after_seq, excluded.entries_after_seq)`,
      ).run(organisation, bounds.lastSeq, bounds.idsAfterSeq, bounds.entriesAfterSeq);
      if (isLast) for (const sql of afterCopySql('?1')) prepare(sql).run(organisation);
      const insert = prepare(
        `INSERT OR REPLACE INTO usage_days (organisation, ${usageColumns.join(', ')})
          VALUES (?, ${usageColumns.map(() => '?').join(', ')})`,
      );
      for (const sums of usage) insert.run(organisation, ...usageValues(sums));
    },
  };
}

export function ledgerStore({ writer, reader, lister }: Callers): LedgerStore {
  return {
    latestEntry: (organisation) => reader.call('latestEntry', [organisation], { organisation }),
    async entryNumber(organisation, requestId) {
      return (await reader.call('entry', [organisation, requestId], { organisation }))?.seq ?? null;
    },
    entry: (organisation, requestId) => reader.call('entry', [organisation, requestId], { organisation }),
    entries: (organisation, page) =>
      lister.call('entries', [organisation, page], { organisation, rows: STEP_ENTRIES }),
    changes: (organisation, page) =>
      lister.call('changes', [organisation, page], { organisation, rows: LOOK_UPS_PER_STEP }),
    changedRows: (organisation, page) =>
      lister.call('changedRows', [organisation, page], { organisation, rows: LOOK_UPS_PER_STEP }),
    snapshot: (organisation, type, afterId) =>
      lister.call('snapshot', [organisation, type, afterId], { organisation, rows: LOOK_UPS_PER_STEP }),
    usage: (organisation, firstDay, lastDay) =>
      lister.call('usage', [organisation, firstDay, lastDay], { organisation, rows: USAGE_GROUP_ENTRIES }),
    async expireLedgers(idsBeforeMs, entriesBeforeMs) {
      const times = [idsBeforeMs, entriesBeforeMs] as const;
      for (const organisation of await reader.call('expiredLedgers', [...times], nobodys)) {
        const options = { organisation, rows: EXPIRED_ENTRIES_AT_ONCE };
        while (await writer.call('expireLedger', [organisation, ...times], options));
      }
    },
    ledgerSize: () => reader.call('ledgerSize', [], nobodys),
    ledgerPart: (organisation, afterSeq) =>
      lister.call('ledgerPart', [organisation, afterSeq], { organisation, rows: COPIED_ENTRIES }),
    addLedgerPart: (organisation, part) =>
      writer.call('addLedgerPart', [organisation, part], {
        organisation,
        rows: part.entries.length + part.usage.length + 1,
        bytes: part.entries.reduce((sum, { ids }) => sum + ids.length + BYTES_PER_ENTRY, 0),
      }),
  };
}
