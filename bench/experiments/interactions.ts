// Single interactions from many connections, each answered after a durable commit, against an echo that keeps nothing.
// All servers run through all rounds: it takes tens of thousands of requests until the compiler has learnt, and an idle
// server costs the others nothing.

import { prepareChild } from '../../tests/harness/prepared-child.ts';
import { Random } from '../../tests/harness/random.ts';
import { startEcho } from '../contenders/echo.ts';
import { headgate } from '../contenders/headgate.ts';
import type { InteractionJob, InteractionTarget } from '../load/interactions.ts';
import type { Timed } from '../load/uploads.ts';
import { ratioPerRound } from '../report/statistics.ts';
import { inRounds, type Turn } from '../rounds.ts';
import { randomUuid, referencedShops } from '../workloads.ts';
import { type Experiment, figure, perSecond } from './experiment.ts';

const body = JSON.stringify({
  interaction_type: 'PAGE_VIEW',
  user_id: 'visitor-83b1',
  item_type: 'SHOP',
  item_id: referencedShops[0]!.shop_id,
  city: 'Leeds',
  country: 'GB',
  platform: 'WEB',
  event_timestamp: 1_714_555_800,
  source: 'SERVICE',
  recommendation_id: randomUuid(new Random(3)),
});

interface Running {
  readonly name: string;
  readonly port: number;
  readonly headers: InteractionTarget['headers'];
}

export const interactions: Experiment = async ({ plan, sqlite, postgres, say }) => {
  await using cleanUp = new AsyncDisposableStack();
  const running: Running[] = [];
  const echo = await startEcho();
  cleanUp.defer(() => echo.stop());
  running.push({ name: 'bare Fastify echo', port: echo.port, headers: {} });
  const ours = [
    headgate('SQLite', sqlite),
    ...(plan.allOnPostgres ? [headgate('PostgreSQL', postgres)] : []),
  ];
  for (const { name, start } of ours) {
    const { headgate: server, key, stop } = await start(0);
    cleanUp.defer(stop);
    const port = Number(new URL(server.url).port);
    running.push({ name, port, headers: { Authorization: `Bearer ${key}` } });
  }
  const send = async ({ port, headers }: Running, requests: number): Promise<Timed> => {
    const target: InteractionTarget = { port, path: '/user-interactions', headers, body };
    const job: InteractionJob = { target, connections: plan.connections, requests };
    const script = new URL('../load/interactions.ts', import.meta.url);
    return (await prepareChild<InteractionJob, Timed>(script, job)).run();
  };
  for (const server of running) await send(server, plan.interactionsToWarmUp);
  const turns = running.map(
    (server): Turn => ({
      contender: server.name,
      unit: 'requests/s',
      measure: async () => perSecond(await send(server, plan.interactions)),
    }),
  );
  const series = await inRounds(plan.rounds, turns, say);
  return {
    comparisons: [
      {
        id: 'interactions',
        title: 'Single interactions',
        conditions: `${plan.interactions} requests on ${plan.connections} connections, each waiting for its answer before it sends the next`,
        series,
      },
    ],
    figures: [figure('interactionsToEcho', ratioPerRound(series[1]!, series[0]!))],
  };
};
