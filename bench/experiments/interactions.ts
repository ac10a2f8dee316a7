// The throughput of interactions that are sent one per request on many connections. Headgate, which responds after a
// durable commit, is compared with an echo server that stores nothing. Both servers keep running through all rounds,
// because the JIT compiler needs tens of thousands of requests to warm up. So Headgate's table grows in every round.

import { prepareChild } from '../../tests/harness/prepared-child.ts';
import { Random } from '../../tests/harness/random.ts';
import { startEcho } from '../contenders/echo.ts';
import { type HeadgateContender, headgate } from '../contenders/headgate.ts';
import type { InteractionJob, InteractionTarget } from '../load/interactions.ts';
import type { Timed } from '../load/uploads.ts';
import type { Plan } from '../plan.ts';
import type { Comparison, Series } from '../report/results.ts';
import { ratioPerRound } from '../report/statistics.ts';
import { inRounds, type Turn } from '../rounds.ts';
import { randomUuid, referencedShops } from '../workloads.ts';
import { type Bench, type Experiment, figure, perSecond } from './experiment.ts';

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

export const interactions: Experiment = async (bench) => {
  const onSqlite = await besideEcho(headgate('SQLite', bench.sqlite), bench);
  const [echo, ours] = onSqlite.series as [Series, Series];
  const onPostgres = bench.plan.allOnPostgres
    ? [await besideEcho(headgate('PostgreSQL', bench.postgres), bench)]
    : [];
  return {
    comparisons: [onSqlite, ...onPostgres],
    figures: [figure('interactionsToEcho', ratioPerRound(ours, echo))],
  };
};

async function besideEcho(contender: HeadgateContender, { plan, say }: Bench): Promise<Comparison> {
  const echo = await startEcho();
  try {
    const bare: Running = { name: 'bare Fastify echo', port: echo.port, headers: {} };
    await using running = await interactionTurns([contender], plan, [bare]);
    return {
      id: `interactions-${contender.name}`,
      title: `Single interactions, ${contender.name}`,
      conditions: `${plan.interactions} requests on ${plan.connections} connections, each waiting for its answer before it sends the next`,
      series: await inRounds(plan.rounds, running.turns, say),
    };
  } finally {
    await echo.stop();
  }
}

/** Starts the contenders, warms all servers up, and returns the turns that measure them. */
export async function interactionTurns(
  contenders: readonly HeadgateContender[],
  plan: Plan,
  others: readonly Running[] = [],
): Promise<{ readonly turns: readonly Turn[] } & AsyncDisposable> {
  await using cleanUp = new AsyncDisposableStack();
  const running = [...others];
  for (const contender of contenders) {
    const { headgate: server, key, stop } = await contender.start(0);
    cleanUp.defer(stop);
    const port = Number(new URL(server.url).port);
    running.push({ name: contender.name, port, headers: { Authorization: `Bearer ${key}` } });
  }
  const send = async ({ port, headers }: Running, requests: number): Promise<Timed> => {
    const target: InteractionTarget = { port, path: '/user-interactions', headers, body };
    const job: InteractionJob = { target, connections: plan.connections, requests };
    const script = new URL('../load/interactions.ts', import.meta.url);
    return (await prepareChild<InteractionJob, Timed>(script, job)).run();
  };
  for (const one of running) await send(one, plan.interactionsToWarmUp);
  const turns = running.map(
    (one): Turn => ({
      contender: one.name,
      unit: 'requests/s',
      measure: async () => perSecond(await send(one, plan.interactions)),
    }),
  );
  const started = cleanUp.move();
  return { turns, [Symbol.asyncDispose]: () => started.disposeAsync() };
}
