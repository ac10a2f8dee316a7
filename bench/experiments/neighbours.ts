// How one organisation fares while another attacks on many connections: its uploads of one record, its reads of one, and
// /readyz. Every attack meets a server of its own.

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
import { type Bench, type Experiment, figure } from './experiment.ts';

const NOBODY = 'nobody attacks';

const kindsInWords: Readonly<Record<Kind, string>> = {
  upload: 'Upload of one record',
  read: 'Reading one record',
  ready: '/readyz',
};

export const neighbours: Experiment = async (bench) => {
  const { plan, sqlite, postgres } = bench;
  const onSqlite = await measureAll('SQLite', sqlite, bench);
  const onPostgres = plan.allOnPostgres ? await measureAll('PostgreSQL', postgres, bench) : null;
  const measured = [...onSqlite.values()];
  const worst = (kind: Kind): number => Math.max(...measured.map(({ times }) => times[kind].p99Ms));
  const requests = measured.reduce((sum, one) => sum + one.requests, 0);
  const failures = measured.reduce((sum, one) => sum + one.failures.length, 0);
  return {
    comparisons: [
      ...comparisonsOf('SQLite', onSqlite, bench),
      ...(onPostgres === null ? [] : comparisonsOf('PostgreSQL', onPostgres, bench)),
    ],
    figures: [
      figure('neighbourUpload', [worst('upload')]),
      figure('neighbourRead', [worst('read')]),
      figure('neighbourReady', [worst('ready')]),
      figure('neighbourMemory', [Math.max(...measured.map(({ peakMb }) => peakMb))]),
      figure('neighbourServed', [(requests - failures) / requests]),
    ],
  };
};

async function measureAll(
  store: string,
  databases: BenchDatabases,
  { plan, say }: Bench,
): Promise<ReadonlyMap<string, Measured>> {
  const all = new Map<string, Measured>();
  for (const attack of [null, ...attacks.slice(0, plan.attacks)]) {
    const name = attack?.name ?? NOBODY;
    const measured = await measureOne(databases, attack, plan);
    all.set(name, measured);
    say(`  ${store}, ${name}: ${measuredInWords(measured)}`);
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
  measured: ReadonlyMap<string, Measured>,
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
        series: entries.map(([contender, { times }]) => ({
          contender,
          unit: 'ms',
          values: [times[kind].p99Ms],
        })),
      }),
    ),
    {
      id: `neighbours-memory-${store}`,
      title: `Peak resident memory, ${store}, under an attack`,
      conditions,
      series: entries.map(([contender, { peakMb }]) => ({ contender, unit: 'MB', values: [peakMb] })),
    },
  ];
}
