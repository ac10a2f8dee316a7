// Analytics: queries and a segment through HTTP against bare DuckDB, SQLite and PostgreSQL, how fast a replica is built,
// and what queries and replication cost uploads, /livez and memory.

import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { timesOfLivezDuring } from '../../tests/harness/livez.ts';
import { residentMemory } from '../../tests/harness/resident-memory.ts';
import { type BareDuckdb, openCopy } from '../analytics/bare-duckdb.ts';
import { averageMs, previewSegment, replicaPids, runSql } from '../analytics/requests.ts';
import {
  condition,
  coveringIndexesSql,
  sqlOfStores,
  statementForDuckdb,
  timesFor,
} from '../analytics/segment.ts';
import { Students } from '../analytics/students.ts';
import { headgate, type RunningHeadgate } from '../contenders/headgate.ts';
import { addOrganisation, type BenchDatabase } from '../databases.ts';
import type { Comparison, Figure, Series } from '../report/results.ts';
import { ratioPerRound } from '../report/statistics.ts';
import { inRounds, type Turn } from '../rounds.ts';
import {
  type Bench,
  CLIENTS,
  type Experiment,
  type Findings,
  figure,
  orderOf,
  perSecond,
} from './experiment.ts';

const groupBySql =
  'SELECT shop_id, count(*), sum(amount) AS amount, avg(savings) FROM transactions GROUP BY shop_id ORDER BY amount DESC';
/** Joins a sixth of the transactions with all interactions of their students. */
const heavySql = `SELECT t.shop_id, count(*), sum(t.amount), count(DISTINCT i.item_id) FROM transactions t
  JOIN interactions i ON i.student_id = t.student_id WHERE t.region = 'GB' GROUP BY t.shop_id`;
const HEAVY_QUERIES = 4;
const REPEATED = 5;
/** One query takes 30 ms, so a few would only show the noise. */
const REPEATED_QUERIES = 100;
/** A round takes only six seconds, and the ratio of a single one varies by a tenth. */
const QUERY_ROUNDS = 8;
/** Node compiles more of the code of a query for the first few seconds, during which it takes a tenth longer. */
const WARM_UP_QUERIES = 200;
/** SQLite gets as much memory for its pages as DuckDB has for a replica. */
const SQLITE_CACHE_KIB = 256 * 1024;
const UPLOADS_MS = 8000;
/** As many as have a replica open at once. */
const FIRST_ORGANISATIONS = 4;

export const analytics: Experiment = async (bench) => {
  const { plan, sqlite, say } = bench;
  const beganAtMs = performance.now();
  const students = await Students.create(sqlite.folder, plan.students);
  say(`  made the data in ${Math.round((performance.now() - beganAtMs) / 1000)} s`);
  await using cleanUp = new AsyncDisposableStack();
  const database = await students.newDatabase();
  cleanUp.defer(database.remove);
  const built = await replicaBuilt(database, bench);
  const replicaFolder = join(dirname(database.database), 'analytics');
  const bare = await openCopy(replicaFolder, join(sqlite.folder, 'bare-duckdb'));
  cleanUp.defer(async () => bare.close());
  const other = await addOrganisation(database.database, 'another');
  const running = await serverOn(database).start(0);
  cleanUp.defer(running.stop);
  // The first queries start the analytics process and read the file, and Node compiles what they run.
  for (let warmUp = 0; warmUp < WARM_UP_QUERIES; warmUp++) {
    await runSql(running, groupBySql);
    await bare.rows({ sql: groupBySql, params: [] });
  }
  const found = [
    built,
    await queries(running, bare, bench),
    // Before anybody uploads, because it includes the server's peak memory.
    await besideQueries(running, bench),
    await segment(running, other.key, bare, students, bench),
    await uploadsBesideReplica(bench),
    await firstQueries(bench),
  ];
  return {
    comparisons: found.flatMap(({ comparisons }) => comparisons),
    figures: found.flatMap(({ figures }) => figures),
  };
};

/** Returns Headgate on a database that already exists and that stays when the server stops. */
function serverOn({ database, key }: BenchDatabase) {
  return headgate('SQLite', { newDatabase: async () => ({ database, key, remove: async () => {} }) });
}

function rowsIn({ customers, transactions, interactions }: Bench['plan']['students']): number {
  return customers + transactions + interactions;
}

/** Resolves when the replica has everything. */
async function replicated(running: RunningHeadgate): Promise<void> {
  while (!(await runSql(running, 'SELECT 1')).as_of.complete);
}

/** Measures how fast a replica is built. The last one stays. */
async function replicaBuilt(database: BenchDatabase, { plan, say }: Bench): Promise<Findings> {
  const turn: Turn = {
    contender: 'a replica, from the first query on',
    unit: 'records/s',
    async measure() {
      await rm(join(dirname(database.database), 'analytics'), { recursive: true, force: true });
      const running = await serverOn(database).start(0);
      try {
        const startedAtMs = performance.now();
        await replicated(running);
        return perSecond({ count: rowsIn(plan.students), elapsedMs: performance.now() - startedAtMs });
      } finally {
        await running.stop();
        // The analytics process ends after its last server.
        await sleep(3000);
      }
    },
  };
  const series = await inRounds(plan.peerRounds, [turn], say);
  const conditions = `${rowsIn(plan.students)} rows on SQLite`;
  return {
    comparisons: [{ id: 'replica', title: 'Building a replica', conditions, series }],
    figures: [figure('replica', series[0]!.values)],
  };
}

async function queries(running: RunningHeadgate, bare: BareDuckdb, { plan, say }: Bench): Promise<Findings> {
  const series = await inRounds(
    QUERY_ROUNDS,
    [
      repeated('bare DuckDB', () => bare.rows({ sql: groupBySql, params: [] }), REPEATED_QUERIES),
      repeated('POST /v1/sql', () => runSql(running, groupBySql), REPEATED_QUERIES),
    ],
    say,
  );
  const [theirs, ours] = series as [Series, Series];
  const conditions = `${plan.students.transactions} transactions, average of ${REPEATED_QUERIES}`;
  return {
    comparisons: [{ id: 'sql', title: 'A query with a group-by', conditions, series }],
    figures: [figure('sqlToDuckdb', ratioPerRound(ours, theirs))],
  };
}

function repeated(contender: string, work: () => Promise<unknown>, times = REPEATED): Turn {
  return { contender, unit: 'ms', measure: () => averageMs(times, work) };
}

async function segment(
  running: RunningHeadgate,
  otherKey: string,
  bare: BareDuckdb,
  students: Students,
  bench: Bench,
): Promise<Findings> {
  const { plan, postgres, say } = bench;
  await using cleanUp = new AsyncDisposableStack();
  const asOf = new Date();
  const times = timesFor(asOf);
  const [row] = await bare.rows(statementForDuckdb(asOf));
  const wanted = Number(row![1]);
  const copy = await students.newDatabase();
  cleanUp.defer(copy.remove);
  const indexed = new DatabaseSync(copy.database);
  cleanUp.defer(async () => indexed.close());
  indexed.exec(`PRAGMA cache_size = -${SQLITE_CACHE_KIB}; ${coveringIndexesSql}`);
  const select = indexed.prepare(sqlOfStores);
  const named = Object.fromEntries(times.map((time, at) => [`$${at + 1}`, time]));
  const inSqlite = async (): Promise<number> => Number(select.get(named)!.members);
  assertCount('SQLite', await inSqlite(), wanted);
  const turns = [
    repeated('bare DuckDB', () => bare.rows(statementForDuckdb(asOf))),
    repeated('SQLite with covering indexes', inSqlite, 1),
  ];
  if (plan.allOnPostgres) turns.push(await turnInPostgres(students, postgres, times, wanted, cleanUp));
  const isServed = (await previewSegment(running, condition)) !== null;
  if (isServed) turns.push(repeated('POST /v1/segments/preview', () => previewSegment(running, condition)));
  else say('  the server has no segments');
  const series = await inRounds(plan.rounds, turns, say);
  const rows = rowsIn(plan.students);
  const comparison: Comparison = {
    id: 'segment',
    title: 'A segment of four conditions',
    conditions: `${rows} rows, ${wanted} members`,
    series,
  };
  if (!isServed) return { comparisons: [comparison], figures: [] };
  const ours = series.at(-1)!;
  const beside = await segmentBesideUploads(running, otherKey, bench);
  return {
    comparisons: [comparison, ...beside.comparisons],
    figures: [
      figure('segmentToDuckdb', ratioPerRound(ours, series[0]!)),
      figure('sqliteToSegment', ratioPerRound(series[1]!, ours)),
      ...beside.figures,
    ],
  };
}

async function turnInPostgres(
  students: Students,
  postgres: Bench['postgres'],
  times: readonly string[],
  wanted: number,
  cleanUp: AsyncDisposableStack,
): Promise<Turn> {
  const copy = await students.copyToPostgres(postgres);
  cleanUp.defer(copy.remove);
  const name = new URL(copy.database).pathname.slice(1);
  await postgres.server.ask(name, 'VACUUM (ANALYZE) customers, transactions, interactions');
  // The text has the times in it, because the test server takes no parameters.
  const sql = sqlOfStores.replaceAll(/\$(\d)/g, (_, number) => `'${times[Number(number) - 1]}'`);
  const work = (): Promise<readonly Record<string, unknown>[]> => postgres.server.ask(name, sql);
  const [row] = await work();
  assertCount('PostgreSQL', Number(row!.members), wanted);
  return repeated('PostgreSQL', work, 1);
}

/** A float sum can differ in its last digit, so that a customer at the edge is counted or not. */
function assertCount(where: string, count: number, wanted: number): void {
  if (Math.abs(count - wanted) > wanted / 1000) {
    throw new Error(`the segment has ${count} members in ${where}, and ${wanted} in DuckDB`);
  }
}

async function segmentBesideUploads(
  running: RunningHeadgate,
  otherKey: string,
  { plan, say }: Bench,
): Promise<Findings> {
  const preview = (): Promise<unknown> => previewSegment(running, condition);
  // Other records each time: records that are there already change nothing, so the replica would have nothing to do.
  let seed = 2000;
  const beside = (contender: string, key: string): Turn => ({
    contender,
    unit: 'ms',
    async measure() {
      const order = { ...orderOf(plan, 'transactions'), seed: seed++ };
      const load = await running.prepareUpload(order, UPLOADS_MS, key);
      const uploading = load.run();
      await preview();
      const elapsedMs = await averageMs(REPEATED, preview);
      await uploading;
      await replicated(running);
      return elapsedMs;
    },
  });
  const series = await inRounds(
    plan.rounds,
    [
      repeated('nobody uploads', preview),
      beside(`${CLIENTS} clients of the organisation upload`, running.key),
      beside(`${CLIENTS} clients of another organisation upload`, otherKey),
    ],
    say,
  );
  const [idle, busy, busyOther] = series as [Series, Series, Series];
  return {
    comparisons: [
      {
        id: 'segment-uploads',
        title: 'The segment through HTTP while clients upload',
        conditions: `${REPEATED} previews, one after the other, each of which sees what was stored before it`,
        series,
      },
    ],
    figures: [
      figure('segmentBesideUploads', ratioPerRound(busy, idle)),
      figure('segmentBesideOthers', ratioPerRound(busyOther, idle)),
    ],
  };
}

/** Measures /livez and memory while heavy queries run. */
async function besideQueries(running: RunningHeadgate, { plan, say }: Bench): Promise<Findings> {
  const heavy = async (): Promise<void> => {
    await Promise.all(Array.from({ length: HEAVY_QUERIES }, () => runSql(running, heavySql)));
  };
  const controls: number[] = [];
  const turn: Turn = {
    contender: '/livez',
    unit: 'ms',
    async measure() {
      const times = await timesOfLivezDuring(running.headgate.url, async () => {
        await heavy();
        // A query of a small test is over too soon to be measured.
        await sleep(500);
      });
      controls.push(times.ownP99Ms);
      return times.p99Ms;
    },
  };
  const [series] = await inRounds(plan.rounds, [turn], say);
  const server = await residentMemory(running.headgate.process.pid!);
  const processes = await Promise.all((await replicaPids(running)).map(residentMemory));
  const control = {
    contender: 'the idle asking process itself woken late',
    unit: 'ms',
    values: controls,
  } as const;
  const memory: Figure[] = [
    figure('memoryBesideQueries', [server!.peakMb]),
    figure('analyticsMemory', [processes.reduce((sum, process) => sum + process!.peakMb, 0)]),
  ];
  return {
    comparisons: [
      {
        id: 'livez-queries',
        title: '/livez, 99th percentile, while queries run',
        conditions: `asked every 10 ms while ${HEAVY_QUERIES} queries join transactions with interactions`,
        series: [series!, control],
      },
    ],
    figures: [figure('livezBesideQueries', series!.values), ...memory],
  };
}

async function uploadsBesideReplica({ plan, sqlite, say }: Bench): Promise<Findings> {
  const rowsPresent = plan.rowsPresent[0]!;
  const order = { ...orderOf(plan, 'transactions'), uploads: plan.uploadsBesideLivez };
  const turn = (contender: string, isBeside: boolean): Turn => ({
    contender,
    unit: 'records/s',
    async measure() {
      const running = await headgate('SQLite', sqlite).start(rowsPresent);
      try {
        const load = await running.prepareUpload(order);
        if (isBeside) {
          // The first query starts the process, and the replica is then built even if nobody waits for it.
          void runSql(running, 'SELECT 1').catch(() => {});
          await sleep(1000);
        }
        return perSecond(await load.run());
      } finally {
        await running.stop();
      }
    },
  });
  const series = await inRounds(
    plan.rounds,
    [turn('no replica', false), turn('a replica is built', true)],
    say,
  );
  const [alone, beside] = series as [Series, Series];
  return {
    comparisons: [
      {
        id: 'replica-uploads',
        title: 'Uploads while a replica is built',
        conditions: `${CLIENTS} clients, ${rowsPresent} transactions present`,
        series,
      },
    ],
    figures: [figure('uploadsBesideReplica', ratioPerRound(beside, alone))],
  };
}

/** Measures the first queries after a start, which wait for processes to start and replicas to be made. */
async function firstQueries({ plan, sqlite, say }: Bench): Promise<Findings> {
  const turn = (contender: string, organisations: number): Turn => ({
    contender,
    unit: 'ms',
    async measure() {
      const database = await sqlite.newDatabase(0);
      const keys = [database.key];
      while (keys.length < organisations) {
        const { key } = await addOrganisation(database.database, `another ${keys.length}`);
        keys.push(key);
      }
      const running = await serverOn(database).start(0);
      try {
        return await averageMs(1, () =>
          Promise.all(keys.map((key) => runSql({ ...running, key }, 'SELECT count(*) FROM shops'))),
        );
      } finally {
        await running.stop();
        await database.remove();
      }
    },
  });
  const series = await inRounds(
    plan.rounds,
    [turn('one organisation', 1), turn(`${FIRST_ORGANISATIONS} organisations`, FIRST_ORGANISATIONS)],
    say,
  );
  return {
    comparisons: [
      {
        id: 'first-queries',
        title: 'The first queries after a start',
        conditions:
          'sent at the same moment, until all have their result; the organisations have few records',
        series,
      },
    ],
    figures: [figure('firstQueries', ratioPerRound(series[1]!, series[0]!))],
  };
}
