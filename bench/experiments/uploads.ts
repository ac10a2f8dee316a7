// The throughput of uploads to Headgate, compared with the upper bounds: the bare SQLite loop and COPY. It is measured
// with different workloads, numbers of clients, and numbers of rows in the table.

import { headgate } from '../contenders/headgate.ts';
import { postgresCopy } from '../contenders/postgres-copy.ts';
import { sqliteLoop } from '../contenders/sqlite-loop.ts';
import type { Comparison, Figure, Series } from '../report/results.ts';
import { ratioPerRound } from '../report/statistics.ts';
import { inRounds } from '../rounds.ts';
import { CLIENTS, type Experiment, type Findings, figure, orderOf, uploadTurn } from './experiment.ts';

/** Measures the first upload, the same upload again, and the other workloads in the same rounds as the upper bound. */
export const uploadsToSqlite: Experiment = async ({ plan, sqlite, say }) => {
  const ours = headgate('SQLite', sqlite);
  const again: number[] = [];
  const turns = [
    uploadTurn(sqliteLoop(sqlite), 0, orderOf(plan, 'transactions')),
    uploadTurn(ours, 0, orderOf(plan, 'transactions'), again),
    { ...uploadTurn(ours, 0, orderOf(plan, 'mixed')), contender: `${ours.name}, 2 % bad` },
    { ...uploadTurn(ours, 0, orderOf(plan, 'interactions')), contender: `${ours.name}, interactions` },
    { ...uploadTurn(ours, 0, orderOf(plan, 'shops')), contender: `${ours.name}, shops` },
  ];
  const series = await inRounds(plan.rounds, turns, say);
  const [ceiling, first, mixed, interactions] = series as [Series, Series, Series, Series];
  const repeated: Series = { contender: `${ours.name}, the same again`, unit: 'records/s', values: again };
  return {
    comparisons: [
      {
        id: 'uploads-sqlite',
        title: 'Uploads to SQLite',
        conditions: `transactions unless said otherwise, ${plan.uploads} uploads of ${plan.recordsPerUpload}, ${CLIENTS} clients, empty table`,
        series: [ceiling, first, repeated, ...series.slice(2)],
      },
    ],
    figures: [
      figure('sqliteToCeiling', ratioPerRound(first, ceiling)),
      figure('badRecords', ratioPerRound(mixed, first)),
      figure('interactionsInBulk', ratioPerRound(interactions, first)),
      figure('uploadAgain', ratioPerRound(repeated, first)),
    ],
  };
};

export const uploadsToPostgres: Experiment = async ({ plan, postgres, say }) => {
  const order = orderOf(plan, 'transactions');
  const turns = [
    uploadTurn(postgresCopy(postgres, 'one connection'), 0, order),
    uploadTurn(headgate('PostgreSQL', postgres), 0, order),
    ...(plan.allOnPostgres ? [uploadTurn(postgresCopy(postgres, 'every client'), 0, order)] : []),
  ];
  const series = await inRounds(plan.rounds, turns, say);
  const [copy, measured, parallelCopy] = series as [Series, Series, Series?];
  return {
    comparisons: [
      {
        id: 'uploads-postgres',
        title: 'Uploads to PostgreSQL',
        conditions: `transactions, ${plan.uploads} uploads of ${plan.recordsPerUpload}, ${CLIENTS} clients, empty table`,
        series,
      },
    ],
    figures: [
      figure('postgresToCopy', ratioPerRound(measured, copy)),
      ...(parallelCopy ? [figure('postgresToParallelCopy', ratioPerRound(measured, parallelCopy))] : []),
    ],
  };
};

export const uploadsByClients: Experiment = async ({ plan, sqlite, postgres, say }) => {
  const comparisons: Comparison[] = [];
  for (const ours of [headgate('SQLite', sqlite), headgate('PostgreSQL', postgres)]) {
    const turns = plan.clients.map((clients) => ({
      ...uploadTurn(ours, 0, orderOf(plan, 'transactions', clients)),
      contender: `${ours.name}, ${clients === 1 ? '1 client' : `${clients} clients`}`,
    }));
    if (turns.length < 2) continue;
    comparisons.push({
      id: `clients-${ours.name}`,
      title: `${ours.name} by clients`,
      conditions: `transactions, ${plan.uploads} uploads of ${plan.recordsPerUpload}, empty table`,
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
  const stores = plan.allOnPostgres ? [onSqlite, onPostgres] : [onSqlite];
  for (const [at, rowsPresent] of plan.rowsPresent.entries()) {
    for (const { store, ceiling, ours } of stores) {
      say(`${store}, ${rowsPresent} rows present`);
      const order = orderOf(plan, 'transactions');
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
        conditions: `transactions, ${plan.uploads} uploads of ${plan.recordsPerUpload}, ${CLIENTS} clients`,
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
    ...uploadTurn(ours, rowsPresent, orderOf(plan, 'transactions')),
    contender: `${ours.name}, ${rowsPresent.toLocaleString('en')} rows`,
  }));
  const series = await inRounds(plan.rounds, turns, say);
  return {
    comparisons: [
      {
        id: 'growth',
        title: 'Uploads to SQLite as the table grows',
        conditions: `transactions, ${plan.uploads} uploads of ${plan.recordsPerUpload}, ${CLIENTS} clients`,
        series,
      },
    ],
    figures: [figure('growth', ratioPerRound(series[1]!, series[0]!))],
  };
};
