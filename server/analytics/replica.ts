// The replica of one organisation: a DuckDB file that is kept up to date from the store. It is a cache. If the file is
// missing, damaged, of another version or does not fit the ledger, it is built anew.

import { existsSync, rmSync, writeFileSync } from 'node:fs';
import type { DuckDBConnection, DuckDBInstance, DuckDBValue } from '@duckdb/node-api';
import { type UploadTypeName, uploadTypeNames } from '@headgate/catalogue/record-types.ts';
import { settledWithin } from '../settled-within.ts';
import { type ChangePosition, type LedgerEntry, type LedgerStore, uploadStatusOf } from '../store/ledger.ts';
import type { OrganisationNumber } from '../store/rows.ts';
import { StoreUnavailable } from '../store/store.ts';
import { openReplicaDatabase, type ReplicaDatabaseOptions } from './duckdb.ts';
import { createReplicaTableSql, recordTables, replicaTables, uploadsTable } from './replica-tables.ts';

/** What a query has seen. */
export interface AsOf {
  /** Everything up to this entry of the ledger is included. */
  readonly seq: number;
  /** When the replica was last compared with the ledger. */
  readonly at: string;
  /** False if the ledger had later entries when the query arrived. */
  readonly complete: boolean;
}

/** How far the replica has been built. */
interface ReplicaState {
  /** The type whose records are read first, or null once all types have been read and the changes are followed. */
  readonly type: UploadTypeName | null;
  readonly afterId: string | null;
  readonly position: ChangePosition;
  /** The request of the entry at the position, to recognise another ledger. Null at the beginning. */
  readonly requestId: string | null;
  /** The ledger's entries up to this one are in the table `uploads`. */
  readonly uploadsSeq: number;
}

const CHANGES_AT_ONCE = 10_000;
const ENTRIES_AT_ONCE = 1000;
/** A replica with other tables than these is built anew. */
const tablesJson = JSON.stringify(replicaTables);

/**
 * Thrown if the replica cannot be continued: its file is damaged, or it does not fit the ledger, for example because the
 * store was restored from a backup.
 */
class Unusable extends Error {}

/** Matches the errors of DuckDB after which the file is still good. */
const passing = /out of memory|no space left|interrupt/i;

export class Replica {
  readonly #path: string;
  readonly #options: ReplicaDatabaseOptions;
  readonly #store: LedgerStore;
  readonly #organisation: OrganisationNumber;
  readonly #report: (message: string) => void;
  #instance: DuckDBInstance | null = null;
  #writer: DuckDBConnection | null = null;
  #state: ReplicaState | null = null;
  #opening: Promise<void> | null = null;
  #syncing: Promise<void> | null = null;
  /** Whether the replica has followed the ledger since it was opened. Only then is it known to fit the ledger. */
  #isFollowing = false;
  #comparedAt = new Date(0);
  #isClosed = false;

  constructor(
    path: string,
    options: ReplicaDatabaseOptions,
    store: LedgerStore,
    organisation: OrganisationNumber,
    report: (message: string) => void,
  ) {
    this.#path = path;
    this.#options = options;
    this.#store = store;
    this.#organisation = organisation;
    this.#report = report;
  }

  /**
   * Resolves when the replica contains everything that is in the ledger now, or after `patienceMs`. The replica goes on
   * catching up after that. Returns the number of the ledger's last entry.
   */
  async catchUp(patienceMs: number): Promise<number> {
    const comparedAt = new Date();
    const wantedSeq = await this.#store.latestEntry(this.#organisation);
    this.#comparedAt = comparedAt;
    const deadlineMs = performance.now() + patienceMs;
    const isBehind = (): boolean =>
      !this.#isFollowing || this.#state?.type !== null || seqOf(this.#state) < wantedSeq;
    while (!this.#isClosed && isBehind()) {
      this.#syncing ??= awaitedLater(
        this.#sync().finally(() => {
          this.#syncing = null;
        }),
      );
      const leftMs = deadlineMs - performance.now();
      if (!(await settledWithin(this.#syncing, Math.max(0, leftMs)))) break;
    }
    return wantedSeq;
  }

  /** Returns what the connection's current transaction sees. `wantedSeq` is the result of `catchUp`. */
  async asOf(connection: DuckDBConnection, wantedSeq: number): Promise<AsOf> {
    const found = await connection.runAndReadAll('SELECT state FROM replica_state');
    const [row] = found.getRows() as [string][];
    const state = JSON.parse(row![0]) as ReplicaState;
    const seq = seqOf(state);
    const complete = state.type === null && seq >= wantedSeq;
    return { seq, at: this.#comparedAt.toISOString(), complete };
  }

  /** Returns a new connection for a query. The caller disconnects it. */
  async connect(): Promise<DuckDBConnection> {
    await this.#open();
    return this.#instance!.connect();
  }

  /** Deletes the file, so that the replica is built anew. Running queries fail. */
  async discard(): Promise<void> {
    await this.#syncing?.catch(() => {});
    this.#disconnect();
    this.#delete();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#syncing?.catch(() => {});
    this.#disconnect();
  }

  async #sync(): Promise<void> {
    await this.#open();
    try {
      await this.#refuseOtherLedger();
      while (!this.#isClosed && this.#state!.type !== null) await this.#copyParts(this.#state!.type);
      if (!this.#isClosed) await this.#followChanges();
      if (!this.#isClosed) await this.#addUploads();
      this.#isFollowing = true;
    } catch (error) {
      if (!(error instanceof Unusable)) throw error;
      this.#report(`the replica is built anew: ${error.message}`);
      this.#disconnect();
      this.#delete();
    }
  }

  /** Opens the file, unless it is open. Queries and the replication may need it at the same moment. */
  #open(): Promise<void> {
    this.#opening ??= this.#openOrBuildAnew().catch((error: unknown) => {
      this.#disconnect();
      rmSync(this.#mark, { force: true });
      throw error;
    });
    return this.#opening;
  }

  /**
   * A file that exists while the replica is being opened. A damaged replica can end the process when it is opened. The
   * next process finds the mark and does not open the replica again.
   */
  get #mark(): string {
    return `${this.#path}.opening`;
  }

  async #openOrBuildAnew(): Promise<void> {
    if (existsSync(this.#mark)) {
      this.#report('the replica is built anew: its file could not be opened');
      this.#delete();
    }
    writeFileSync(this.#mark, '');
    try {
      await this.#openFile();
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      this.#report(`the replica is built anew: ${(error as Error).message}`);
      this.#disconnect();
      this.#delete();
      await this.#openFile();
    }
    rmSync(this.#mark, { force: true });
  }

  async #openFile(): Promise<void> {
    this.#instance = await openReplicaDatabase(this.#path, this.#options);
    this.#writer = await this.#instance.connect();
    await this.#writer.run('CREATE TABLE IF NOT EXISTS replica_state (tables VARCHAR, state VARCHAR)');
    const found = await this.#writer.runAndReadAll('SELECT tables, state FROM replica_state');
    const [row] = found.getRows() as [string, string][];
    if (row !== undefined && row[0] !== tablesJson) throw new Error('it has the tables of another version');
    if (row === undefined) await this.#createTables();
    else this.#state = JSON.parse(row[1]) as ReplicaState;
  }

  async #createTables(): Promise<void> {
    const latest = await this.#store.latestEntry(this.#organisation);
    const entry = await this.#entryAt(latest);
    await this.#inTransaction(async () => {
      for (const table of replicaTables) await this.#run(createReplicaTableSql(table));
      await this.#run('INSERT INTO replica_state VALUES (?, ?)', [tablesJson, '{}']);
      return {
        type: uploadTypeNames[0]!,
        afterId: null,
        position: { seq: latest, ids: null },
        requestId: entry?.requestId ?? null,
        uploadsSeq: 0,
      };
    });
  }

  /** Throws if the ledger is not the one that the replica was built from. */
  async #refuseOtherLedger(): Promise<void> {
    const { position, requestId } = this.#state!;
    if (requestId === null || position.ids !== null) return;
    const entry = await this.#entryAt(position.seq);
    if (entry?.requestId !== requestId) throw new Unusable(`the ledger has another entry ${position.seq}`);
  }

  async #entryAt(seq: number): Promise<LedgerEntry | null> {
    const page = { ...everyEntry, before: seq + 1, limit: 1 };
    const { entries } = await this.#store.entries(this.#organisation, page);
    return entries[0]?.seq === seq ? entries[0] : null;
  }

  /** Copies the records of a type, part by part. Reads the next part while the last one is written. */
  async #copyParts(type: UploadTypeName): Promise<void> {
    const read = (afterId: string | null) => this.#store.snapshot(this.#organisation, type, afterId);
    let reading = read(this.#state!.afterId);
    while (!this.#isClosed) {
      const { lines, next } = await reading;
      if (next !== null) reading = awaitedLater(read(next));
      const nextType = uploadTypeNames[uploadTypeNames.indexOf(type) + 1] ?? null;
      await this.#inTransaction(async () => {
        await this.#write(lines);
        return { ...this.#state!, type: next === null ? nextType : type, afterId: next };
      });
      if (next === null) return;
    }
  }

  /** Writes changes until the end of the ledger. Reads the next page while the last one is written. */
  async #followChanges(): Promise<void> {
    const read = (after: ChangePosition) =>
      this.#store.changes(this.#organisation, { after, types: uploadTypeNames, limit: CHANGES_AT_ONCE });
    let reading = read(this.#state!.position);
    while (!this.#isClosed) {
      const page = await reading;
      if (page.kind === 'gone') throw new Unusable(`the changes after it are not in the ledger`);
      const { lines, next, latest } = page;
      const isEnd = next.seq === latest && next.ids === null;
      if (!isEnd) reading = awaitedLater(read(next));
      const requestId =
        next.ids === null ? ((await this.#entryAt(next.seq))?.requestId ?? null) : this.#state!.requestId;
      await this.#inTransaction(async () => {
        await this.#write(lines);
        return { ...this.#state!, position: next, requestId };
      });
      if (isEnd) return;
    }
  }

  /** Adds the ledger's entries up to the position to the table `uploads`. */
  async #addUploads(): Promise<void> {
    const { position, uploadsSeq } = this.#state!;
    const lastSeq = position.ids === null ? position.seq : position.seq - 1;
    if (lastSeq <= uploadsSeq) return;
    await this.#inTransaction(async () => {
      for (let before: number | null = lastSeq + 1; before !== null && before > uploadsSeq + 1; ) {
        const page = { ...everyEntry, before, limit: ENTRIES_AT_ONCE };
        const { entries, next } = await this.#store.entries(this.#organisation, page);
        const added = entries.filter(({ seq }) => seq > uploadsSeq);
        await this.#insertUploads(added);
        before = added.length < entries.length ? null : next;
      }
      return { ...this.#state!, uploadsSeq: lastSeq };
    });
  }

  async #insertUploads(entries: readonly LedgerEntry[]): Promise<void> {
    if (entries.length === 0) return;
    const lines = entries.map((entry) =>
      JSON.stringify({
        ...entry,
        request_id: entry.requestId,
        key_id: entry.keyId,
        received_at: new Date(entry.receivedAtMs).toISOString(),
        status: uploadStatusOf(entry),
      }),
    );
    const structure = structureOf(uploadsTable.columns);
    await this.#run(`INSERT INTO uploads SELECT unnest(from_json(line, '${structure}')) FROM ${linesSql}`, [
      lines.join('\n'),
    ]);
  }

  /** Writes the records of the lines. A record that the replica has already is replaced. */
  async #write(lines: Uint8Array): Promise<void> {
    for (const [type, text] of byType(new TextDecoder().decode(lines))) {
      const { name, key, columns } = recordTables.get(type)!;
      const structure = JSON.stringify({ id: 'UUID', record: JSON.parse(structureOf(columns)) });
      await this.#run(
        `CREATE OR REPLACE TEMP TABLE incoming AS SELECT from_json_strict(line, '${structure}') AS change FROM ${linesSql}`,
        [text],
      );
      await this.#run(`DELETE FROM "${name}" WHERE "${key}" IN (SELECT change.id FROM incoming)`);
      await this.#run(
        `INSERT INTO "${name}" SELECT unnest(change.record) FROM incoming WHERE change.record IS NOT NULL`,
      );
    }
  }

  /** Runs `work` in a transaction, together with the change of the state that it returns. */
  async #inTransaction(work: () => Promise<ReplicaState>): Promise<void> {
    await this.#run('BEGIN TRANSACTION');
    try {
      const state = await work();
      await this.#run('UPDATE replica_state SET state = ?', [JSON.stringify(state)]);
      await this.#run('COMMIT');
      this.#state = state;
    } catch (error) {
      await this.#run('ROLLBACK').catch(() => {});
      throw error;
    }
  }

  async #run(sql: string, values: DuckDBValue[] = []): Promise<void> {
    try {
      await this.#writer!.run(sql, values);
    } catch (error) {
      const { message } = error as Error;
      throw passing.test(message) ? error : new Unusable(message, { cause: error });
    }
  }

  #disconnect(): void {
    this.#writer?.disconnectSync();
    this.#instance?.closeSync();
    this.#writer = null;
    this.#instance = null;
    this.#opening = null;
    this.#state = null;
    this.#isFollowing = false;
  }

  #delete(): void {
    for (const suffix of ['', '.wal', '.opening']) rmSync(`${this.#path}${suffix}`, { force: true });
  }
}

/** Returns the number of the last entry that is included completely, or 0 while the records are copied. */
function seqOf({ type, position, uploadsSeq }: ReplicaState): number {
  const { seq, ids } = position;
  return type === null ? Math.min(ids === null ? seq : seq - 1, uploadsSeq) : 0;
}

const everyEntry = {
  types: uploadTypeNames,
  status: null,
  keyId: null,
  fromMs: null,
  toMs: null,
};

const linesSql = '(SELECT unnest(string_split(?, chr(10))) AS line)';

function structureOf(columns: readonly { readonly name: string; readonly type: string }[]): string {
  return JSON.stringify(Object.fromEntries(columns.map(({ name, type }) => [name, type])));
}

const lineType = /^\{"seq":\d+,"type":"([^"]+)"/;

/** Groups the lines by their type. A type's lines are joined again. */
function byType(text: string): ReadonlyMap<UploadTypeName, string> {
  const lines = text.split('\n').slice(0, -1);
  const groups = Map.groupBy(lines, (line) => lineType.exec(line)![1] as UploadTypeName);
  return new Map([...groups].map(([type, ofType]) => [type, ofType.join('\n')]));
}

/** Returns the promise. If it is rejected before anybody awaits it, the process goes on. */
function awaitedLater<Result>(promise: Promise<Result>): Promise<Result> {
  promise.catch(() => {});
  return promise;
}
