// The performance claims of Headgate, each with its bound. A run checks whether the measured values keep the bounds.

import {
  LARGEST_UPLOADS_MEMORY_LIMIT_MB,
  LARGEST_UPLOADS_P99_LIMIT_MS,
  MEMORY_LIMIT_MB,
  P99_LIMIT_MS,
} from '../tests/harness/neighbours/limits.ts';
import type { Figure } from './report/results.ts';

/** The default of HEADGATE_ANALYTICS_MEMORY. */
export const ANALYTICS_MEMORY_LIMIT_MB = 1024;

type Claim = Pick<Figure, 'title' | 'unit' | 'bound'>;

export const claims = {
  sqliteToCeiling: {
    title: 'SQLite, transactions, 4 clients, empty table, against the bare upsert loop',
    unit: 'ratio',
    bound: { atLeast: 0.8 },
  },
  sqliteToCeilingAt2M: {
    title: 'SQLite with 2 million rows present, against the bare upsert loop there',
    unit: 'ratio',
    bound: { atLeast: 0.9 },
  },
  growth: {
    title: 'Throughput at 5 million rows against 0.5 million',
    unit: 'ratio',
    bound: { atLeast: 0.6 },
  },
  postgresToCopy: {
    title: 'PostgreSQL, transactions, 4 clients, against COPY on one connection',
    unit: 'ratio',
    bound: { atLeast: 0.7 },
  },
  postgresToParallelCopy: {
    title: 'PostgreSQL, transactions, 4 clients, against COPY on four connections',
    unit: 'ratio',
    bound: null,
  },
  interactionsToEcho: {
    title: 'Interactions on SQLite, each durable, against a bare echo',
    unit: 'ratio',
    bound: { atLeast: 0.75 },
  },
  badRecords: {
    title: '2 % bad records against none',
    unit: 'ratio',
    bound: { atLeast: 0.9 },
  },
  interactionsInBulk: {
    title: 'Uploads of interactions against uploads of transactions, both to SQLite',
    unit: 'ratio',
    bound: { atLeast: 0.6 },
  },
  feed: {
    title: 'Records that one follower reads from the feed of changes, SQLite, NDJSON',
    unit: 'records/s',
    bound: { atLeast: 100_000 },
  },
  idleFollowers: {
    title: 'Processor time per second for 50 followers that are up to date',
    unit: 'ms',
    bound: { below: 10 },
  },
  sqlToDuckdb: {
    title: 'SELECT with a group-by over 2 million transactions through HTTP, time against bare DuckDB',
    unit: 'ratio',
    bound: { below: 1.3 },
  },
  firstQueries: {
    title: 'First SQL of four organisations at the same moment after a start, time against one organisation',
    unit: 'ratio',
    bound: null,
  },
  segmentToDuckdb: {
    title: 'Segment of four conditions over 4.2 million rows through HTTP, time against bare DuckDB',
    unit: 'ratio',
    bound: { below: 1.3 },
  },
  sqliteToSegment: {
    title: 'The same segment in SQLite with covering indexes, time against HTTP',
    unit: 'ratio',
    bound: { atLeast: 5 },
  },
  segmentBesideUploads: {
    title:
      'The same segment through HTTP while 4 clients of the organisation upload, time against an idle server',
    unit: 'ratio',
    bound: { below: 3 },
  },
  segmentBesideOthers: {
    title:
      'The same segment through HTTP while 4 clients of another organisation upload, time against an idle server',
    unit: 'ratio',
    bound: { below: 3 },
  },
  replica: {
    title: 'Rows that a replica copies from SQLite, 4.2 million rows',
    unit: 'records/s',
    bound: { atLeast: 100_000 },
  },
  uploadsBesideReplica: {
    title: 'Uploads of 4 clients while a replica is built, against none',
    unit: 'ratio',
    bound: { atLeast: 0.85 },
  },
  livezBesideQueries: {
    title: '/livez 99th percentile while 4 heavy queries run',
    unit: 'ms',
    bound: { below: 25 },
  },
  memoryBesideQueries: {
    title: 'Peak resident memory of the server while queries run',
    unit: 'MB',
    bound: { below: 400 },
  },
  analyticsMemory: {
    title: 'Peak resident memory of the replica processes, which have a limit of 1 GiB together',
    unit: 'MB',
    bound: { below: ANALYTICS_MEMORY_LIMIT_MB + 150 },
  },
  uploadAgain: {
    title: 'Identical upload again against the first, into an empty table',
    unit: 'ratio',
    bound: { atLeast: 1.5 },
  },
  uploadAgainAt2M: {
    title: 'Identical upload again against the first, with 2 million rows present',
    unit: 'ratio',
    bound: { atLeast: 1.5 },
  },
  toTextbookOnSqlite: {
    title: 'Against the textbook service (one statement per record), SQLite',
    unit: 'ratio',
    bound: { atLeast: 3 },
  },
  toTextbookOnPostgres: {
    title: 'Against the textbook service (one statement per record), PostgreSQL',
    unit: 'ratio',
    bound: { atLeast: 8 },
  },
  toDirectus: { title: 'Against Directus, PostgreSQL', unit: 'ratio', bound: { atLeast: 30 } },
  livezOnSqlite: {
    title: '/livez 99th percentile under 4 uploading clients, SQLite',
    unit: 'ms',
    bound: { below: 25 },
  },
  livezOnPostgres: {
    title: '/livez 99th percentile under 4 uploading clients, PostgreSQL',
    unit: 'ms',
    bound: { below: 25 },
  },
  peakMemory: {
    title: 'Peak resident memory, 32 concurrent uploads of 5000',
    unit: 'MB',
    bound: { below: 400 },
  },
  memoryGrowth: {
    title: 'Resident memory at the end against after the first third',
    unit: 'ratio',
    bound: { below: 1.05 },
  },
  loadToClient: {
    title: 'headgate load from CSV, 1 million transactions, against a client with its bodies ready',
    unit: 'ratio',
    bound: { atLeast: 0.7 },
  },
  loadMemory: {
    title: 'Peak resident memory of headgate load, 1 million transactions from CSV',
    unit: 'MB',
    bound: { below: 300 },
  },
  neighbourUpload: {
    title: 'Upload of one record while another organisation attacks, 99th percentile in the worst attack',
    unit: 'ms',
    bound: { below: P99_LIMIT_MS },
  },
  neighbourRead: {
    title: 'Reading one record while another organisation attacks, 99th percentile in the worst attack',
    unit: 'ms',
    bound: { below: P99_LIMIT_MS },
  },
  neighbourReady: {
    title: '/readyz while an organisation attacks, 99th percentile in the worst attack',
    unit: 'ms',
    bound: { below: P99_LIMIT_MS },
  },
  neighbourUploadBesideLargest: {
    title: 'Upload of one record while another organisation sends the largest uploads, 99th percentile',
    unit: 'ms',
    bound: { below: LARGEST_UPLOADS_P99_LIMIT_MS },
  },
  largestUploadsMemory: {
    title: 'Peak resident memory while an organisation sends the largest uploads',
    unit: 'MB',
    bound: { below: LARGEST_UPLOADS_MEMORY_LIMIT_MB },
  },
  neighbourMemory: {
    title: 'Peak resident memory while an organisation attacks, in the worst attack',
    unit: 'MB',
    bound: { below: MEMORY_LIMIT_MB },
  },
  neighbourServed: {
    title: 'Share of requests answered 200 while another organisation attacks, with no thread restarted',
    unit: 'ratio',
    bound: { atLeast: 1 },
  },
  start: {
    title: 'Start to first answer on a database of 2 million rows',
    unit: 's',
    bound: { below: 1 },
  },
} as const satisfies Record<string, Claim>;

export type FigureId = keyof typeof claims;
