// The latency for one organisation while another attacks on many connections. It is measured for uploads of one record,
// reads of one record, and /readyz. Every attack runs against a new server.

import { closeSync, openSync } from 'node:fs';
import { type Attack, attackNamed, attacks, type Scale } from '../../tests/harness/neighbours/attacks.ts';
import {
  CONNECTIONS,
  type Measured,
  measuredInWords,
  openGround,
} from '../../tests/harness/neighbours/measure.ts';
import { type Kind, kinds } from '../../tests/harness/neighbours/neighbour.ts';
import type { BenchDatabases } from '../databases.ts';
import type { Plan } from '../plan.ts';
import type { Comparison } from '../report/results.ts';
import { median } from '../report/statistics.ts';
import { type Bench, type Experiment, figure } from './experiment.ts';

/** The attack that is also measured for `lastingAttackMs`. */
const LASTING = '5000 new transactions';

const kindsInWords: Readonly<Record<Kind, string>> = {
  upload: 'Upload of one record',
  packed: 'Upload of one record with gzip',
  read: 'Reading one record',
  ready: '/readyz',
};

interface Planned {
  readonly name: string;
  /** Null measures the neighbour alone. */
  readonly attack: Attack | null;
  readonly durationMs: number;
}

/** The measurements of one attack on one store, one for each round. */
interface Attacked extends Planned {
  readonly rounds: readonly Measured[];
}

export const neighbours: Experiment = async (bench) => {
  const { plan, sqlite, postgres } = bench;
  const onSqlite = await measureAll('SQLite', sqlite, bench);
  const onPostgres = plan.allOnPostgres ? await measureAll('PostgreSQL', postgres, bench) : [];
  const all = [...onSqlite, ...onPostgres];
  const usual = all.filter(({ attack }) => !attack?.isLargest);
  const besideLargest = all.filter(({ attack }) => attack?.isLargest);
  const measured = all.flatMap(({ rounds }) => rounds);
  const requests = measured.reduce((sum, one) => sum + one.requests, 0);
  const failures = measured.reduce((sum, one) => sum + one.failures.length, 0);
  return {
    comparisons: [
      ...comparisonsOf('SQLite', onSqlite, bench),
      ...(onPostgres.length === 0 ? [] : comparisonsOf('PostgreSQL', onPostgres, bench)),
    ],
    figures: [
      figure('neighbourUpload', worst(usual, uploadP99Ms)),
      figure('neighbourRead', worst(all, p99MsOf('read'))),
      figure('neighbourReady', worst(all, p99MsOf('ready'))),
      figure('neighbourUploadBesideLargest', worst(besideLargest, uploadP99Ms)),
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

/** The slower of the plain and the compressed uploads. */
function uploadP99Ms({ times }: Measured): number {
  return Math.max(times.upload.p99Ms, times.packed.p99Ms);
}

/** Returns the values of all rounds for the attack whose median is the highest. */
function worst(attacked: readonly Attacked[], read: (measured: Measured) => number): readonly number[] {
  const byMedian = attacked
    .map(({ rounds }) => rounds.map(read))
    .toSorted((one, other) => median(other) - median(one));
  return byMedian[0]!;
}

function plannedBy({ attacks: count, attackMs, lastingAttackMs }: Plan): readonly Planned[] {
  const chosen = attacks.filter(({ isLargest }, at) => at < count || isLargest);
  const planned: Planned[] = [null, ...chosen].map((attack) => ({
    name: attack?.name ?? 'nobody attacks',
    attack,
    durationMs: attackMs,
  }));
  if (lastingAttackMs === null) return planned;
  const name = `${LASTING}, for ${lastingAttackMs / 1000} s`;
  return [...planned, { name, attack: attackNamed(LASTING), durationMs: lastingAttackMs }];
}

async function measureAll(
  store: string,
  databases: BenchDatabases,
  { plan, say }: Bench,
): Promise<readonly Attacked[]> {
  const attacked = plannedBy(plan).map((planned) => ({ ...planned, rounds: [] as Measured[] }));
  for (let round = 1; round <= plan.attackRounds; round++) {
    for (const { name, attack, durationMs, rounds } of attacked) {
      const measured = await measureOne(databases, attack, durationMs, plan.attackScale);
      rounds.push(measured);
      say(`  ${store}, round ${round}/${plan.attackRounds}, ${name}: ${measuredInWords(measured)}`);
    }
  }
  return attacked;
}

async function measureOne(
  databases: BenchDatabases,
  attack: Attack | null,
  durationMs: number,
  scale: Scale,
): Promise<Measured> {
  const { database, remove } = await databases.newDatabase(0);
  const logTo = openSync('/dev/null', 'w');
  try {
    const ground = await openGround({
      database,
      attacks: attack === null ? [] : [attack],
      scale,
      logTo,
    });
    try {
      return await ground.measure(attack, durationMs);
    } finally {
      await ground.close();
    }
  } finally {
    closeSync(logTo);
    await remove();
  }
}

function comparisonsOf(store: string, attacked: readonly Attacked[], { plan }: Bench): readonly Comparison[] {
  const conditions = `another organisation attacks on ${CONNECTIONS} connections for ${plan.attackMs / 1000} s, unless stated otherwise`;
  return [
    ...kinds.map(
      (kind): Comparison => ({
        id: `neighbours-${kind}-${store}`,
        title: `${kindsInWords[kind]}, ${store}, 99th percentile beside an attack`,
        conditions,
        series: attacked.map(({ name, rounds }) => ({
          contender: name,
          unit: 'ms',
          values: rounds.map(p99MsOf(kind)),
        })),
      }),
    ),
    {
      id: `neighbours-memory-${store}`,
      title: `Peak resident memory, ${store}, under an attack`,
      conditions,
      series: attacked.map(({ name, rounds }) => ({
        contender: name,
        unit: 'MB',
        values: rounds.map(peakMbOf),
      })),
    },
  ];
}
