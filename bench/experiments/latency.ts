// The latency of /livez while clients upload at full speed.

import { timesOfLivezDuring } from '../../tests/harness/livez.ts';
import { headgate } from '../contenders/headgate.ts';
import { inRounds, type Turn } from '../rounds.ts';
import { CLIENTS, type Experiment, figure, orderOf } from './experiment.ts';

export const livez: Experiment = async ({ plan, sqlite, postgres, say }) => {
  const controls: Record<string, number[]> = {};
  const turns = [headgate('SQLite', sqlite), headgate('PostgreSQL', postgres)].map((contender): Turn => {
    const control: number[] = [];
    controls[contender.name] = control;
    return {
      contender: `/livez, ${contender.name}`,
      unit: 'ms',
      async measure() {
        const running = await contender.start(0);
        try {
          const order = orderOf(plan, 'transactions');
          const load = await running.prepareUpload({ ...order, uploads: plan.uploadsBesideLivez });
          const times = await timesOfLivezDuring(running.headgate.url, async () => void (await load.run()));
          control.push(times.ownP99Ms);
          return times.p99Ms;
        } finally {
          await running.stop();
        }
      },
    };
  });
  const series = await inRounds(plan.rounds, turns, say);
  return {
    comparisons: [
      {
        id: 'livez',
        title: '/livez, 99th percentile',
        conditions: `asked every 10 ms while ${CLIENTS} clients upload ${plan.recordsPerUpload} at a time`,
        series: [
          ...series,
          ...Object.entries(controls).map(([name, values]) => ({
            contender: `the idle asking process itself woken late, ${name}`,
            unit: 'ms' as const,
            values,
          })),
        ],
      },
    ],
    figures: [figure('livezOnSqlite', series[0]!.values), figure('livezOnPostgres', series[1]!.values)],
  };
};
