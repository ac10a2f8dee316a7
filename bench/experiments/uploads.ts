// Throughput of uploads: against the ceilings, against the peers, by clients, by what is uploaded and by what is
// there already.

import { headgate } from '../contenders/headgate.ts';
import { postgresCopy } from '../contenders/postgres-copy.ts';
import { sqliteLoop } from '../contenders/sqlite-loop.ts';
import type { UploadOrder } from '../load/uploads.ts';
import type { Comparison, Figure, Series } from '../report/results.ts';
import { ratioPerRound } from '../report/statistics.ts';
import { inRounds } from '../rounds.ts';
import {
  type Bench,
  type Experiment,
  type Findings,
  figure,
  orderOf,
  type Peer,
  uploadTurn,
} from './experiment.ts';

const CLIENTS = 4;

function peerOrder(bench: Bench, round: number): UploadOrder {
  const order = orderOf(bench.plan, 'transactions', round, CLIENTS);
  return { ...order, uploads: CLIENTS * bench.plan.peerUploadsPerClient };
}

function seriesOf(series: readonly Series[], contender: string): Series {
  const found = series.find((candidate) => candidate.contender === contender);
  if (found === undefined) throw new Error(`${contender} was not measured`);
  return found;
}

/** The ratio of Headgate to each peer that took part and that something is claimed of. */
function againstPeers(peers: readonly Peer[], series: readonly Series[], ours: Series): readonly Figure[] {
  return peers.flatMap(({ contender, claim }) =>
    claim === null ? [] : [figure(claim, ratioPerRound(ours, seriesOf(series, contender.name)))],
  );
}

/** Headgate's first upload, the same again, and the other workloads, all in the same rounds as the ceiling and the peers. */
export const uploadsToSqlite: Experiment = async (bench) => {
  const { plan, sqlite, peers, say } = bench;
  const ours = headgate('SQLite', sqlite);
  const again: number[] = [];
  const turns = [
    uploadTurn(sqliteLoop(sqlite), 0, (round) => orderOf(plan, 'transactions', round, CLIENTS)),
    uploadTurn(ours, 0, (round) => orderOf(plan, 'transactions', round, CLIENTS), again),
    {
      ...uploadTurn(ours, 0, (round) => orderOf(plan, 'mixed', round, CLIENTS)),
      contender: `${ours.name}, 2 % bad`,
    },
    {
      ...uploadTurn(ours, 0, (round) => orderOf(plan, 'shops', round, CLIENTS)),
      contender: `${ours.name}, shops`,
    },
    ...peers.onSqlite.map(({ contender }) => uploadTurn(contender, 0, (round) => peerOrder(bench, round))),
  ];
  const series = await inRounds(plan.rounds, turns, say);
  const [ceiling, first, mixed] = series as [Series, Series, Series];
  const repeated: Series = { contender: `${ours.name}, the same again`, unit: 'records/s', values: again };
  return {
    comparisons: [
      {
        id: 'uploads-sqlite',
        title: 'Uploads to SQLite',
        conditions: `transactions unless said otherwise, ${plan.recordsPerUpload} per request, ${CLIENTS} clients, empty table`,
        series: [ceiling, first, repeated, ...series.slice(2)],
      },
    ],
    figures: [
      figure('sqliteToCeiling', ratioPerRound(first, ceiling)),
      figure('badRecords', ratioPerRound(mixed, first)),
      figure('uploadAgain', ratioPerRound(repeated, first)),
      ...againstPeers(peers.onSqlite, series, first),
    ],
  };
};

export const uploadsToPostgres: Experiment = async (bench) => {
  const { plan, postgres, peers, say } = bench;
  const order = (round: number): UploadOrder => orderOf(plan, 'transactions', round, CLIENTS);
  const ours = headgate('PostgreSQL', postgres);
  const series = await inRounds(
    plan.rounds,
    [
      uploadTurn(postgresCopy(postgres, 'one connection'), 0, order),
      uploadTurn(postgresCopy(postgres, 'every client'), 0, order),
      uploadTurn(ours, 0, order),
      ...peers.onPostgres.map(({ contender }) =>
        uploadTurn(contender, 0, (round) => peerOrder(bench, round)),
      ),
    ],
    say,
  );
  const measured = seriesOf(series, ours.name);
  return {
    comparisons: [
      {
        id: 'uploads-postgres',
        title: 'Uploads to PostgreSQL',
        conditions: `transactions, ${plan.recordsPerUpload} per request, ${CLIENTS} clients, empty table`,
        series,
      },
    ],
    figures: [
      figure('postgresToCopy', ratioPerRound(measured, series[0]!)),
      figure('postgresToParallelCopy', ratioPerRound(measured, series[1]!)),
      ...againstPeers(peers.onPostgres, series, measured),
    ],
  };
};

export const uploadsByClients: Experiment = async ({ plan, sqlite, postgres, say }) => {
  const comparisons: Comparison[] = [];
  for (const ours of [headgate('SQLite', sqlite), headgate('PostgreSQL', postgres)]) {
    const turns = plan.clients.map((clients) => ({
      ...uploadTurn(ours, 0, (round) => orderOf(plan, 'transactions', round, clients)),
      contender: `${ours.name}, ${clients === 1 ? '1 client' : `${clients} clients`}`,
    }));
    if (turns.length < 2) continue;
    comparisons.push({
      id: `clients-${ours.name}`,
      title: `${ours.name} by clients`,
      conditions: `transactions, ${plan.recordsPerUpload} per request, empty table`,
      series: await inRounds(plan.rounds, turns, say),
    });
  }
  return { comparisons, figures: [] };
};

export const uploadsToFullTables: Experiment = async ({ plan, sqlite, postgres, say }) => {
  const comparisons: Comparison[] = [];
  const figures: Figure[] = [];
  const onSqlite = { store: 'SQLite', ceiling: sqliteLoop(sqlite), ours: headgate('SQLite', sqlite) };
  const onPostgres = {
    store: 'PostgreSQL',
    ceiling: postgresCopy(postgres, 'one connection'),
    ours: headgate('PostgreSQL', postgres),
  };
  const stores = plan.fillsPostgres ? [onSqlite, onPostgres] : [onSqlite];
  for (const [at, rowsPresent] of plan.rowsPresent.entries()) {
    for (const { store, ceiling, ours } of stores) {
      say(`${store}, ${rowsPresent} rows present`);
      const order = (round: number): UploadOrder => orderOf(plan, 'transactions', round, CLIENTS);
      const again: number[] = [];
      const turns = [uploadTurn(ceiling, rowsPresent, order), uploadTurn(ours, rowsPresent, order, again)];
      const [bare, first] = (await inRounds(plan.rounds, turns, say)) as [Series, Series];
      const repeated: Series = {
        contender: `${ours.name}, the same again`,
        unit: 'records/s',
        values: again,
      };
      comparisons.push({
        id: `rows-${rowsPresent}-${store}`,
        title: `Uploads to ${store} with ${rowsPresent.toLocaleString('en')} rows present`,
        conditions: `transactions, ${plan.recordsPerUpload} per request, ${CLIENTS} clients`,
        series: [bare, first, repeated],
      });
      if (store !== 'SQLite' || at > 0) continue;
      figures.push(figure('sqliteToCeilingAt2M', ratioPerRound(first, bare)));
      figures.push(figure('uploadAgainAt2M', ratioPerRound(repeated, first)));
    }
  }
  return { comparisons, figures };
};

export const uploadsToGrowingTable: Experiment = async ({ plan, sqlite, say }): Promise<Findings> => {
  if (plan.growth === null) return { comparisons: [], figures: [] };
  const { small, large } = plan.growth;
  const ours = headgate('SQLite', sqlite);
  const turns = [small, large].map((rowsPresent) => ({
    ...uploadTurn(ours, rowsPresent, (round) => orderOf(plan, 'transactions', round, CLIENTS)),
    contender: `${ours.name}, ${rowsPresent.toLocaleString('en')} rows`,
  }));
  const series = await inRounds(plan.rounds, turns, say);
  return {
    comparisons: [
      {
        id: 'growth',
        title: 'Uploads to SQLite as the table grows',
        conditions: `transactions, ${plan.recordsPerUpload} per request, ${CLIENTS} clients`,
        series,
      },
    ],
    figures: [figure('growth', ratioPerRound(series[1]!, series[0]!))],
  };
};
