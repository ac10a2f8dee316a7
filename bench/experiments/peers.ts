// The throughput of uploads to Headgate, compared with other services. All get the same records, but the other services
// get fewer uploads, because they are slower.

import type { Contender } from '../contenders/contender.ts';
import { headgate } from '../contenders/headgate.ts';
import type { UploadOrder } from '../load/uploads.ts';
import type { Comparison, Figure, Series } from '../report/results.ts';
import { ratioPerRound } from '../report/statistics.ts';
import { inRounds } from '../rounds.ts';
import { CLIENTS, type Experiment, figure, orderOf, type Peer, uploadTurn } from './experiment.ts';

export const uploadsBesidePeers: Experiment = async ({ plan, sqlite, postgres, peers, say }) => {
  const stores: readonly { store: string; ours: Contender; others: readonly Peer[] }[] = [
    { store: 'SQLite', ours: headgate('SQLite', sqlite), others: peers.onSqlite },
    { store: 'PostgreSQL', ours: headgate('PostgreSQL', postgres), others: peers.onPostgres },
  ];
  const order = orderOf(plan, 'transactions');
  const shortOrder: UploadOrder = { ...order, uploads: CLIENTS * plan.peerUploadsPerClient };
  const comparisons: Comparison[] = [];
  const figures: Figure[] = [];
  for (const { store, ours, others } of stores) {
    if (others.length === 0) continue;
    const turns = [
      uploadTurn(ours, 0, order),
      ...others.map(({ contender }) => uploadTurn(contender, 0, shortOrder)),
    ];
    const series = await inRounds(plan.peerRounds, turns, say);
    const [measured, ...ofOthers] = series as [Series, ...Series[]];
    comparisons.push({
      id: `peers-${store}`,
      title: `Uploads beside other services on ${store}`,
      conditions: `${plan.recordsPerUpload} transactions per upload, ${CLIENTS} clients, empty table; ${plan.uploads} uploads to Headgate, and ${CLIENTS * plan.peerUploadsPerClient} to each other service because they are slower`,
      series,
    });
    for (const [place, { claim }] of others.entries()) {
      if (claim !== null) figures.push(figure(claim, ratioPerRound(measured, ofOthers[place]!)));
    }
  }
  return { comparisons, figures };
};
