// Single interactions from many connections, each answered after a durable commit, against an echo that keeps nothing.

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

/** So many requests first, for the compiler to learn from. */
const WARM_UP_SHARE = 0.75;

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

export const interactions: Experiment = async ({ plan, sqlite, postgres, say }) => {
  const rate = async (port: number, headers: InteractionTarget['headers']): Promise<number> => {
    const send = async (requests: number): Promise<Timed> => {
      const target: InteractionTarget = { port, path: '/user-interactions', headers, body };
      const job: InteractionJob = { target, connections: plan.connections, requests };
      const script = new URL('../load/interactions.ts', import.meta.url);
      return (await prepareChild<InteractionJob, Timed>(script, job)).run();
    };
    await send(Math.ceil(plan.interactions * WARM_UP_SHARE));
    return perSecond(await send(plan.interactions));
  };
  const echo: Turn = {
    contender: 'bare Fastify echo',
    unit: 'requests/s',
    async measure() {
      const running = await startEcho();
      try {
        return await rate(running.port, {});
      } finally {
        await running.stop();
      }
    },
  };
  const contenders = [
    headgate('SQLite', sqlite),
    ...(plan.allOnPostgres ? [headgate('PostgreSQL', postgres)] : []),
  ];
  const ours = contenders.map(
    (contender): Turn => ({
      contender: contender.name,
      unit: 'requests/s',
      async measure() {
        const running = await contender.start(0);
        try {
          const port = Number(new URL(running.headgate.url).port);
          return await rate(port, { Authorization: `Bearer ${running.key}` });
        } finally {
          await running.stop();
        }
      },
    }),
  );
  const series = await inRounds(plan.rounds, [echo, ...ours], say);
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
