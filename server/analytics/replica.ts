// The replica of one organisation: a DuckDB file that is kept up to date from the store. It is a cache. If the file is
// missing, damaged, of another version or does not fit the ledger, it is built anew.

import { existsSync, rmSync, writeFileSync } from 'node:fs';
import type { DuckDBConnection, DuckDBInstance, DuckDBValue } from '@duckdb/node-api';
import { uploadTypeNames } from '@headgate/catalogue/record-types.ts';
import { settledWithin } from '../settled-within.ts';
import { type ColumnarRows, entryAt, type LedgerStore } from '../store/ledger.ts';
import type { OrganisationNumber } from '../store/rows.ts';
import type { SegmentSet, SegmentStore } from '../store/segments.ts';
import { StoreUnavailable } from '../store/store.ts';
import { BuildProgress } from './build-progress.ts';
import { isLocked, openReplicaDatabase, type ReplicaDatabaseOptions } from './duckdb.ts';
import { changeParts, type Part, type Source, snapshotParts, uploadParts } from './replica-parts.ts';
import {
  copyMembers,
  hasLaterChanges,
  isSame,
  type MembersCopy,
  removeMembers,
  type SegmentState,
} from './replica-segments.ts';
import { beginReading, type ReplicaState, seqOf, stateIn, Unusable } from './replica-state.ts';
import {
  createReplicaTableSql,
  recordTables,
  replicaTables,
  rowsSql,
  uploadsTable,
} from './replica-tables.ts';
import { readQueryError } from './sql/query-errors.ts';
import { UploadPauses } from './upload-pauses.ts';

/** What a query has seen. */
export interface AsOf {
  /** Everything up to this entry of the ledger is included. */
  readonly seq: number;
  /** When the query arrived. Relative times are computed from it. */
  readonly at: string;
  /** False if the ledger had later entries when the query arrived. */
  readonly complete: boolean;
}

/** What a query should see: everything that the store has when the query arrives. */
export interface Wanted {
  /** The last entry of the ledger. */
  readonly seq: number;
  readonly at: Date;
  readonly segments: SegmentSet;
}

/** A transaction that can only read, and what it sees. */
export interface ReadTransaction {
  readonly connection: DuckDBConnection;
  readonly asOf: AsOf;
}

type ReplicatedStore = LedgerStore & Pick<SegmentStore, 'segments' | 'memberships' | 'memberChanges'>;

/** How many parts a transaction has at most. DuckDB takes a fifth less time for few large transactions. */
const PARTS_PER_TRANSACTION = 5;
/** How many parts are read while others are written. While DuckDB commits, the store would otherwise wait. */
const PARTS_READ_AHEAD = 3;
/** Changes that queries wait for are written without pauses for as long as the queries wait. */
const UNDISTURBED_MS = 10_000;
/** Records are copied without pauses for this time, so that the first query of a small organisation does not wait. */
const UNDISTURBED_COPY_MS = 2000;
/** DuckDB copies records a quarter faster with one thread: a second one would mostly wait for the first, without sleeping. */
const COPYING_THREADS = 1;
/** If the ledger has no more entries, one thread saves less time than it takes to open the file twice more. */
const FEW_ENTRIES = 10;
/** A build that takes longer is reported, because queries no longer wait for it. */
const PROGRESS_EVERY_MS = 10_000;
/** A replica with other tables than these is built anew. */
const tablesSql = replicaTables.map(createReplicaTableSql).join(';\n');

/** Thrown to a query that has waited while the replica was closed. */
export class ReplicaClosed extends Error {}

/** Matches the errors of DuckDB after which the file is still good. */
const passing = /out of memory|no space left|interrupt/i;

/** Returns whether DuckDB's message says that the disk is full. */
export function isFullDisk(message: string): boolean {
  return /no space left/i.test(message);
}

export class Replica {
  readonly #path: string;
  readonly #options: ReplicaDatabaseOptions;
  readonly #source: Source & { readonly store: ReplicatedStore };
  readonly #report: (message: string) => void;
  readonly #progressEveryMs: number;
  #instance: DuckDBInstance | null = null;
  #writer: DuckDBConnection | null = null;
  #threads = 0;
  /** How many connections queries have. */
  #connections = 0;
  /** The connections that are being made. If DuckDB is closed meanwhile, it can end the process. */
  readonly #connecting = new Set<Promise<unknown>>();
  #state: ReplicaState | null = null;
  #opening: Promise<void> | null = null;
  #syncing: Promise<void> | null = null;
  /** How often the file was deleted. */
  #deletions = 0;
  readonly #closing = new AbortController();
  /** Whether the replica has followed the ledger since it was opened. Only then is it known to fit the ledger. */
  #isFollowing = false;
  /** The revision of the segments whose members are in the replica. */
  #segmentsRevision = 0;

  constructor(
    path: string,
    options: ReplicaDatabaseOptions,
    store: ReplicatedStore,
    organisation: OrganisationNumber,
    report: (message: string) => void,
    progressEveryMs = PROGRESS_EVERY_MS,
  ) {
    this.#path = path;
    this.#options = options;
    this.#source = { store, organisation };
    this.#report = report;
    this.#progressEveryMs = progressEveryMs;
  }

  /** Reads what the store has now. */
  async wanted(): Promise<Wanted> {
    const at = new Date();
    const { store, organisation } = this.#source;
    const [seq, segments] = await Promise.all([
      store.latestEntry(organisation),
      store.segments(organisation),
    ]);
    return { seq, at, segments };
  }

  /**
   * Resolves when the replica contains everything that is wanted, or after `patienceMs`. The replica continues to catch up
   * after that. The members of segments are brought up to date, too.
   */
  async catchUp({ seq, segments: { revision, segments } }: Wanted, patienceMs: number): Promise<void> {
    const deadlineMs = performance.now() + patienceMs;
    const isBehind = (): boolean =>
      !this.#isFollowing ||
      this.#lacksThreads ||
      this.#state?.type !== null ||
      seqOf(this.#state) < seq ||
      this.#segmentsRevision < revision ||
      hasLaterChanges(segments, this.#state.segments);
    while (!this.#isClosed && isBehind()) {
      this.#syncing ??= awaitedLater(
        this.#sync(seq).finally(() => {
          this.#syncing = null;
        }),
      );
      const leftMs = deadlineMs - performance.now();
      if (!(await settledWithin(this.#syncing, Math.max(0, leftMs)))) break;
    }
  }

  /**
   * Begins a transaction that can only read, on a connection of its own that the caller gives back to `disconnect`. Says
   * whether it sees everything that is wanted.
   */
  async begin({ seq: wantedSeq, at }: Wanted): Promise<ReadTransaction> {
    const connection = await this.connect();
    try {
      const state = await beginReading(connection);
      const seq = seqOf(state);
      const complete = state.type === null && seq >= wantedSeq;
      return { connection, asOf: { seq, at: at.toISOString(), complete } };
    } catch (error) {
      this.disconnect(connection);
      throw error;
    }
  }

  /**
   * Returns up to which change the connection's current transaction sees the members of a segment, or null if it does not
   * see all records yet, or not the segment.
   */
  async membersSeq(connection: DuckDBConnection, segment: number): Promise<number | null> {
    const { type, segments } = await stateIn(connection);
    if (type !== null) return null;
    return segments.find((known) => known.segment === segment)?.lastSeq ?? null;
  }

  /** Returns a new connection. The caller gives it back to `disconnect`. */
  async connect(): Promise<DuckDBConnection> {
    let opening: Promise<void>;
    do {
      opening = this.#open();
      await opening;
    } while (this.#opening !== opening);
    this.#connections++;
    const connecting = this.#instance!.connect();
    this.#connecting.add(connecting);
    try {
      return await connecting;
    } catch (error) {
      this.#connections--;
      throw error;
    } finally {
      this.#connecting.delete(connecting);
    }
  }

  disconnect(connection: DuckDBConnection): void {
    connection.disconnectSync();
    this.#connections--;
  }

  /** Removes the mark of a file that is being opened. Call this if the process is about to end for another reason. */
  trustFile(): void {
    rmSync(this.#mark, { force: true });
  }

  /** Resolves when nothing is being copied. */
  async settled(): Promise<void> {
    await this.#syncing?.catch(() => {});
  }

  /** Deletes the file, so that the replica is built anew, and reports the reason. Running queries fail. */
  async discard(reason: string): Promise<void> {
    const deletions = this.#deletions;
    await this.#idle();
    // Several queries may find the same damage.
    if (this.#deletions !== deletions) return;
    this.#report(`the replica is built anew: ${reason}`);
    this.#disconnect();
    this.#delete();
  }

  /** Resolves when nothing is being copied, the file is not being opened, and no query is connecting. */
  async #idle(): Promise<void> {
    let opening: Promise<void> | null = null;
    while (this.#syncing !== null || this.#opening !== opening || this.#connecting.size > 0) {
      opening = this.#opening;
      await Promise.allSettled([this.#syncing, opening, ...this.#connecting]);
    }
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#idle();
    await this.#checkpoint();
    this.#disconnect();
  }

  /** Copies all records, unless that is done, and then the changes up to an entry. */
  async #sync(wantedSeq: number): Promise<void> {
    await this.#open();
    try {
      await this.#refuseOtherLedger();
      await this.#copyEverything();
      if (!this.#isClosed) await this.#useAllThreads();
      if (!this.#isClosed) await this.#followChanges(wantedSeq);
      if (!this.#isClosed) await this.#addUploads();
      if (!this.#isClosed) await this.#followSegments();
      this.#isFollowing = true;
    } catch (error) {
      if (!(error instanceof Unusable)) {
        this.#closeIfRefusing(error);
        throw error;
      }
      this.#report(`the replica is built anew: ${error.message}`);
      while (this.#connecting.size > 0) await Promise.allSettled(this.#connecting);
      this.#disconnect();
      this.#delete();
    }
  }

  /**
   * After some errors, for example if the disk is full, the open database refuses everything. Its file is good and can be
   * opened again, but never while queries still have the old database open.
   */
  #closeIfRefusing(error: unknown): void {
    if (readQueryError(error, '').type === 'FATAL' && this.#connections === 0) this.#disconnect();
  }

  /** Opens the file, unless it is open. Queries and the replication may need it at the same moment. */
  #open(): Promise<void> {
    if (this.#isClosed) return Promise.reject(new ReplicaClosed());
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
      const { message } = error as Error;
      if (error instanceof StoreUnavailable || isFullDisk(message) || isLocked(message)) throw error;
      this.#report(`the replica is built anew: ${readQueryError(error, '').message}`);
      // The replica is still being opened, and nobody else may begin that.
      this.#closeInstance();
      this.#delete();
      await this.#openFile();
    }
    rmSync(this.#mark, { force: true });
  }

  async #openFile(): Promise<void> {
    await this.#openInstance(this.#options.threads);
    await this.#writer!.run('CREATE TABLE IF NOT EXISTS replica_state (tables VARCHAR, state VARCHAR)');
    const found = await this.#writer!.runAndReadAll('SELECT tables, state FROM replica_state');
    const [row] = found.getRows() as [string, string][];
    if (row !== undefined && row[0] !== tablesSql) throw new Error('it has the tables of another version');
    if (row === undefined) await this.#createTables();
    else this.#state = JSON.parse(row[1]) as ReplicaState;
    const { type, position } = this.#state!;
    if (type !== null && position.seq > FEW_ENTRIES) await this.#reopenInstance(COPYING_THREADS);
  }

  async #openInstance(threads: number): Promise<void> {
    this.#threads = threads;
    this.#instance = await openReplicaDatabase(this.#path, { ...this.#options, threads });
    this.#writer = await this.#instance.connect();
  }

  async #reopenInstance(threads: number): Promise<void> {
    await this.#checkpoint();
    this.#closeInstance();
    await this.#openInstance(threads);
  }

  /** Writes all changes to the file. `closeSync` would do it on the thread that serves all the organisation's queries. */
  async #checkpoint(): Promise<void> {
    await this.#writer?.run('CHECKPOINT').catch((error: Error) => {
      // The changes are also in the write-ahead log, which DuckDB reads when it opens the file again.
      this.#report(`the replica is closed without a checkpoint: ${readQueryError(error, '').message}`);
    });
  }

  #closeInstance(): void {
    this.#writer?.disconnectSync();
    this.#instance?.closeSync();
    this.#writer = null;
    this.#instance = null;
  }

  /** Whether the replica is still open with the threads for copying, and nobody uses it. */
  get #lacksThreads(): boolean {
    return this.#threads !== this.#options.threads && this.#connections === 0;
  }

  /** Gives queries all threads again when the records are copied. If a query is running, they are given to later ones. */
  async #useAllThreads(): Promise<void> {
    if (!this.#lacksThreads) return;
    this.#opening = this.#reopenInstance(this.#options.threads).catch((error: unknown) => {
      this.#disconnect();
      throw error;
    });
    await this.#opening;
  }

  async #createTables(): Promise<void> {
    const latest = await this.#source.store.latestEntry(this.#source.organisation);
    const entry = await entryAt(this.#source.store, this.#source.organisation, latest);
    await this.#inTransaction(async () => {
      await this.#run(tablesSql);
      await this.#run('INSERT INTO replica_state VALUES (?, ?)', [tablesSql, '{}']);
      return {
        type: uploadTypeNames[0]!,
        afterId: null,
        position: { seq: latest, ids: null },
        requestId: entry?.requestId ?? null,
        uploadsSeq: 0,
        segments: [],
      };
    });
  }

  /** Throws if the ledger is not the one that the replica was built from. */
  async #refuseOtherLedger(): Promise<void> {
    const { position, requestId } = this.#state!;
    if (requestId === null || position.ids !== null) return;
    const entry = await entryAt(this.#source.store, this.#source.organisation, position.seq);
    if (entry?.requestId !== requestId) throw new Unusable(`the ledger has another entry ${position.seq}`);
  }

  /** Copies all records that are not copied yet. */
  async #copyEverything(): Promise<void> {
    const { type, afterId } = this.#state!;
    if (type === null) return;
    const progress = new BuildProgress(this.#report, this.#progressEveryMs);
    await this.#writeParts(snapshotParts(this.#source, type, afterId), {
      undisturbedMs: UNDISTURBED_COPY_MS,
      write: async (rows) => progress.add(rows.type, await this.#insert(rows)),
    });
    if (!this.#isClosed) progress.end();
  }

  /** Writes the changes up to an entry. */
  async #followChanges(wantedSeq: number): Promise<void> {
    await this.#writeParts(changeParts(this.#source, wantedSeq, this.#state!.position), {
      undisturbedMs: UNDISTURBED_MS,
      write: (rows) => this.#replace(rows),
    });
  }

  /** Writes one part after the other, several in a transaction. The next ones are read meanwhile. */
  async #writeParts(
    parts: AsyncGenerator<Part>,
    {
      undisturbedMs,
      write,
    }: { readonly undisturbedMs: number; readonly write: (rows: ColumnarRows) => Promise<void> },
  ): Promise<void> {
    const pauses = new UploadPauses(this.#source.store, undisturbedMs, this.#closing.signal);
    const reading = Array.from({ length: PARTS_READ_AHEAD }, () => awaitedLater(parts.next()));
    for (let isDone = false; !isDone && !this.#isClosed; ) {
      await pauses.around(() =>
        this.#inTransaction(async () => {
          let state = this.#state!;
          for (let written = 0; written < PARTS_PER_TRANSACTION && !this.#isClosed; written++) {
            const part = await reading.shift()!;
            isDone = part.done === true;
            if (part.done) break;
            reading.push(awaitedLater(parts.next()));
            for (const rows of part.value.rows) await write(rows);
            state = { ...state, ...part.value.change };
          }
          return state;
        }),
      );
    }
  }

  /** Adds the ledger's entries up to the position to the table `uploads`. */
  async #addUploads(): Promise<void> {
    const { position, uploadsSeq } = this.#state!;
    const lastSeq = position.ids === null ? position.seq : position.seq - 1;
    if (lastSeq <= uploadsSeq) return;
    await this.#inTransaction(async () => {
      for await (const columnsJson of uploadParts(this.#source, uploadsSeq, lastSeq)) {
        await this.#run(`INSERT INTO uploads ${rowsSql(uploadsTable.columns)}`, columnsJson);
      }
      return { ...this.#state!, uploadsSeq: lastSeq };
    });
  }

  /** Brings the members of all segments up to date, each segment in a transaction. */
  async #followSegments(): Promise<void> {
    const { revision, segments } = await this.#source.store.segments(this.#source.organisation);
    const copy: MembersCopy = { ...this.#source, run: (sql, values) => this.#run(sql, values) };
    const others = (segment: number): readonly SegmentState[] =>
      this.#state!.segments.filter((known) => known.segment !== segment);
    for (const state of this.#state!.segments) {
      if (segments.some((segment) => isSame(state, segment))) continue;
      await this.#inTransaction(async () => {
        await removeMembers(copy, state.name);
        return { ...this.#state!, segments: others(state.segment) };
      });
    }
    for (const segment of segments) {
      if (this.#isClosed) return;
      const known = this.#state!.segments.find((one) => one.segment === segment.segment);
      if (known?.lastSeq === segment.lastSeq) continue;
      await this.#inTransaction(async () => {
        const lastSeq = await copyMembers(copy, segment, known);
        const state = { segment: segment.segment, name: segment.name, lastSeq };
        return { ...this.#state!, segments: [...others(segment.segment), state] };
      });
    }
    this.#segmentsRevision = revision;
  }

  /** Inserts rows, of which the replica has none yet. Resolves to their number. */
  #insert({ type, columnsJson }: ColumnarRows): Promise<number> {
    const { name, columns } = recordTables.get(type)!;
    return this.#run(`INSERT INTO "${name}" ${rowsSql(columns)}`, [...columnsJson]);
  }

  /** Inserts rows, and replaces those that the replica has already. */
  async #replace(rows: ColumnarRows): Promise<void> {
    const { name, key } = recordTables.get(rows.type)!;
    await this.#run(`DELETE FROM "${name}" WHERE "${key[0]}" IN (${rowsSql([{ type: 'UUID' }])})`, [
      rows.idsJson,
    ]);
    await this.#insert(rows);
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

  /** Runs a statement. Resolves to the number of rows that it has changed. */
  async #run(sql: string, values: DuckDBValue[] = []): Promise<number> {
    try {
      return (await this.#writer!.run(sql, values)).rowsChanged;
    } catch (error) {
      if (passing.test((error as Error).message)) throw error;
      throw new Unusable(readQueryError(error, '').message, { cause: error });
    }
  }

  #disconnect(): void {
    this.#closeInstance();
    this.#opening = null;
    this.#state = null;
    this.#isFollowing = false;
    this.#segmentsRevision = 0;
  }

  #delete(): void {
    this.#deletions++;
    for (const suffix of ['', '.wal', '.opening'])
      rmSync(`${this.#path}${suffix}`, { recursive: true, force: true });
  }
}

/** Returns the promise. If it is rejected before anybody awaits it, the process does not end. */
function awaitedLater<Result>(promise: Promise<Result>): Promise<Result> {
  promise.catch(() => {});
  return promise;
}
