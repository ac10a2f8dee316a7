// The latency for one organisation while another attacks on many connections. It is measured for uploads of one record,
// reads of one record, and /readyz. Every attack runs against a new server.

import { closeSync, openSync } from 'node:fs';
import { type Attack, attacks } from '../../tests/harness/neighbours/attacks.ts';
import {
  CONNECTIONS,
  type Measured,
  measuredInWords,
  openGround,
} from '../../tests/harness/neighbours/measure.ts';
import { type Kind, kinds } from '../../tests/harness/neighbours/neighbour.ts';
import type { BenchDatabases } from '../databases.ts';
import type { Comparison } from '../report/results.ts';
import { median } from '../report/statistics.ts';
import { type Bench, type Experiment, figure } from './experiment.ts';

const NOBODY = 'nobody attacks';

const kindsInWords: Readonly<Record<Kind, string>> = {
  upload: 'Upload of one record',
  packed: 'Upload of one record with gzip',
  read: 'Reading one record',
  ready: '/readyz',
};

/** The measurements of one attack, one for each round. */
type Rounds = readonly Measured[];

export const neighbours: Experiment = async (bench) => {
  const { plan, sqlite, postgres } = bench;
  const onSqlite = await measureAll('SQLite', sqlite, bench);
  const onPostgres = plan.allOnPostgres ? await measureAll('PostgreSQL', postgres, bench) : null;
  const largest = new Set<string>(attacks.filter(({ isLargest }) => isLargest).map(({ name }) => name));
  const roundsOf = (isLargest: boolean): readonly Rounds[] =>
    [...onSqlite].filter(([name]) => largest.has(name) === isLargest).map(([, rounds]) => rounds);
  const usual = roundsOf(false);
  const besideLargest = roundsOf(true);
  const all = [...onSqlite.values()];
  const measured = all.flat();
  const requests = measured.reduce((sum, one) => sum + one.requests, 0);
  const failures = measured.reduce((sum, one) => sum + one.failures.length, 0);
  return {
    comparisons: [
      ...comparisonsOf('SQLite', onSqlite, bench),
      ...(onPostgres === null ? [] : comparisonsOf('PostgreSQL', onPostgres, bench)),
    ],
    figures: [
      figure('neighbourUpload', worst(usual, p99MsOf('upload'))),
      figure('neighbourRead', worst(all, p99MsOf('read'))),
      figure('neighbourReady', worst(all, p99MsOf('ready'))),
      figure('neighbourUploadBesideLargest', worst(besideLargest, p99MsOf('upload'))),
      figure('largestUploadsMemory', worst(besideLargest, peakMbOf)),
      figure('neighbourMemory', worst(usual, peakMbOf)),
      figure('neighbourServed', [(requests - failures) / requests]),
    ],
  };
};

function p99MsOf(kind: Kind): (measured: Measured) => number {
  return ({ times }) => times[kind].p99Ms;
}

function peakMbOf({ peakMb }: Measured): number {
  return peakMb;
}

/** Returns the values of all rounds for the attack whose median is the highest. */
function worst(attacked: readonly Rounds[], read: (measured: Measured) => number): readonly number[] {
  const byMedian = attacked
    .map((rounds) => rounds.map(read))
    .toSorted((one, other) => median(other) - median(one));
  return byMedian[0]!;
}

async function measureAll(
  store: string,
  databases: BenchDatabases,
  { plan, say }: Bench,
): Promise<ReadonlyMap<string, Rounds>> {
  const chosen = [null, ...attacks.filter(({ isLargest }, at) => at < plan.attacks || isLargest)];
  const all = new Map<string, Measured[]>(chosen.map((attack) => [attack?.name ?? NOBODY, []]));
  for (let round = 1; round <= plan.attackRounds; round++) {
    for (const attack of chosen) {
      const name = attack?.name ?? NOBODY;
      const measured = await measureOne(databases, attack, plan);
      all.get(name)!.push(measured);
      say(`  ${store}, round ${round}/${plan.attackRounds}, ${name}: ${measuredInWords(measured)}`);
    }
  }
  return all;
}

async function measureOne(
  databases: BenchDatabases,
  attack: Attack | null,
  { attackMs, attackScale }: Bench['plan'],
): Promise<Measured> {
  const { database, remove } = await databases.newDatabase(0);
  const logTo = openSync('/dev/null', 'w');
  try {
    const ground = await openGround({
      database,
      attacks: attack === null ? [] : [attack],
      scale: attackScale,
      logTo,
    });
    try {
      return await ground.measure(attack, attackMs);
    } finally {
      await ground.close();
    }
  } finally {
    closeSync(logTo);
    await remove();
  }
}

function comparisonsOf(
  store: string,
  measured: ReadonlyMap<string, Rounds>,
  { plan }: Bench,
): readonly Comparison[] {
  const conditions = `another organisation attacks on ${CONNECTIONS} connections for ${plan.attackMs / 1000} s`;
  const entries = [...measured];
  return [
    ...kinds.map(
      (kind): Comparison => ({
        id: `neighbours-${kind}-${store}`,
        title: `${kindsInWords[kind]}, ${store}, 99th percentile beside an attack`,
        conditions,
        series: entries.map(([contender, rounds]) => ({
          contender,
          unit: 'ms',
          values: rounds.map(p99MsOf(kind)),
        })),
      }),
    ),
    {
      id: `neighbours-memory-${store}`,
      title: `Peak resident memory, ${store}, under an attack`,
      conditions,
      series: entries.map(([contender, rounds]) => ({
        contender,
        unit: 'MB',
        values: rounds.map(peakMbOf),
      })),
    },
  ];
}
