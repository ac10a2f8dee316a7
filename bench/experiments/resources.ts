// Headgate's memory use with many concurrent uploads, and its start time on a large database.

import { startHeadgate } from '../../tests/harness/headgate.ts';
import { type ResidentMemory, residentMemory } from '../../tests/harness/resident-memory.ts';
import { headgate } from '../contenders/headgate.ts';
import type { UploadOrder } from '../load/uploads.ts';
import { median } from '../report/statistics.ts';
import { inRounds } from '../rounds.ts';
import { type Experiment, figure } from './experiment.ts';

const SAMPLE_EVERY_MS = 250;
const BODIES_PER_CLIENT = 2;
/** The claim that memory does not grow is checked only in runs of at least ten minutes. */
const SHORTEST_TO_JUDGE_GROWTH_MS = 600_000;

async function memoryOf(pid: number): Promise<ResidentMemory> {
  const memory = await residentMemory(pid);
  if (memory === null) throw new Error('the server has ended');
  return memory;
}

export const memory: Experiment = async ({ plan, sqlite, say }) => {
  const running = await headgate('SQLite', sqlite).start(0);
  try {
    const clients = plan.memoryClients;
    const order: UploadOrder = {
      workload: 'transactions',
      seed: 900,
      uploads: clients * BODIES_PER_CLIENT,
      recordsPerUpload: plan.recordsPerUpload,
      clients,
    };
    const load = await running.prepareUpload(order, plan.memoryMs);
    const samplesMb: number[] = [];
    let isOver = false;
    const { pid } = running.headgate.process;
    const sampling = (async () => {
      while (!isOver) {
        samplesMb.push((await memoryOf(pid!)).nowMb);
        await new Promise((resolve) => setTimeout(resolve, SAMPLE_EVERY_MS));
      }
    })();
    await load.run();
    isOver = true;
    await sampling;
    const { peakMb } = await memoryOf(pid!);
    const third = Math.ceil(samplesMb.length / 3);
    const afterFirstThird = median(samplesMb.slice(third, 2 * third));
    const atEnd = median(samplesMb.slice(-third));
    say(
      `  peak ${Math.round(peakMb)} MB, middle third ${Math.round(afterFirstThird)} MB, last third ${Math.round(atEnd)} MB`,
    );
    const series = [
      { contender: 'Headgate on SQLite, peak', unit: 'MB' as const, values: [peakMb] },
      { contender: 'Headgate on SQLite, middle third', unit: 'MB' as const, values: [afterFirstThird] },
      { contender: 'Headgate on SQLite, last third', unit: 'MB' as const, values: [atEnd] },
    ];
    return {
      comparisons: [
        {
          id: 'memory',
          title: 'Resident memory',
          conditions: `${clients} concurrent uploads of ${plan.recordsPerUpload} for ${Math.round(plan.memoryMs / 1000)} s, each changing what is there`,
          series,
        },
      ],
      figures: [
        figure('peakMemory', [peakMb]),
        {
          ...figure('memoryGrowth', [atEnd / afterFirstThird]),
          ...(plan.memoryMs < SHORTEST_TO_JUDGE_GROWTH_MS ? { bound: null } : {}),
        },
      ],
    };
  } finally {
    await running.stop();
  }
};

export const start: Experiment = async ({ plan, sqlite, say }) => {
  const rowsPresent = plan.rowsPresent[0]!;
  const [series] = await inRounds(
    plan.rounds,
    [
      {
        contender: 'Headgate on SQLite',
        unit: 'ms',
        async measure() {
          const { database, remove } = await sqlite.newDatabase(rowsPresent);
          const startedAtMs = performance.now();
          const running = await startHeadgate(database);
          const { status } = await fetch(`${running.url}/readyz`);
          const elapsedMs = performance.now() - startedAtMs;
          await running.stop();
          await remove();
          if (status !== 200) throw new Error(`/readyz answered ${status}`);
          return elapsedMs;
        },
      },
    ],
    say,
  );
  return {
    comparisons: [],
    figures: [
      figure(
        'start',
        series!.values.map((ms) => ms / 1000),
      ),
    ],
  };
};
