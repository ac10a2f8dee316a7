// The throughput and memory of `headgate load` with one large CSV file. The throughput is compared with that of the
// benchmark's client, which sends the same records as prepared bodies.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { recordTypes } from '@headgate/catalogue/record-types.ts';
import { csvLine } from '../../server/cli/csv-lines.ts';
import { commandLine } from '../../tests/harness/headgate.ts';
import { residentMemory } from '../../tests/harness/resident-memory.ts';
import { headgate, type RunningHeadgate } from '../contenders/headgate.ts';
import type { UploadOrder } from '../load/uploads.ts';
import { ratioPerRound } from '../report/statistics.ts';
import { inRounds, type Turn } from '../rounds.ts';
import { recordsOf } from '../workloads.ts';
import { CLIENTS, type Experiment, figure, perSecond, uploadTurn } from './experiment.ts';

const SEED = 1200;
/** Linux reports the peak since the start, so only a peak after the last sample can be missed. */
const SAMPLE_EVERY_MS = 25;

export const load: Experiment = async ({ plan, sqlite, say }) => {
  const { loadRecords, recordsPerUpload } = plan;
  if (loadRecords === null) return { comparisons: [], figures: [] };
  const order: UploadOrder = {
    workload: 'transactions',
    seed: SEED,
    uploads: loadRecords / recordsPerUpload,
    recordsPerUpload,
    clients: CLIENTS,
  };
  const file = join(sqlite.folder, 'transactions.csv');
  await writeCsv(file, order);
  const ours = headgate('SQLite', sqlite);
  const peaksMb: number[] = [];
  const loading: Turn = {
    contender: 'headgate load, from CSV',
    unit: 'records/s',
    async measure() {
      const running = await ours.start(0);
      try {
        const { elapsedMs, peakMb } = await loadFile(file, sqlite.folder, running, loadRecords);
        peaksMb.push(peakMb);
        return perSecond({ count: loadRecords, elapsedMs });
      } finally {
        await running.stop();
      }
    },
  };
  const sending: Turn = { ...uploadTurn(ours, 0, order), contender: "the benchmark's client" };
  const [prepared, loaded] = await inRounds(plan.rounds, [sending, loading], say);
  await rm(file);
  const records = `${loadRecords.toLocaleString('en')} transactions`;
  return {
    comparisons: [
      {
        id: 'load',
        title: 'Loading a CSV file into SQLite',
        conditions: `${records}, ${CLIENTS} requests at once, empty table; the client has its bodies ready`,
        series: [prepared!, loaded!],
      },
    ],
    figures: [figure('loadToClient', ratioPerRound(loaded!, prepared!)), figure('loadMemory', peaksMb)],
  };
};

/** Writes the records of all uploads of the order to one CSV file. */
async function writeCsv(
  path: string,
  { workload, seed, uploads, recordsPerUpload }: UploadOrder,
): Promise<void> {
  const columns = Object.keys(recordTypes.transactions.fields);
  const file = await open(path, 'w');
  await file.write(csvLine(columns));
  for (let upload = 0; upload < uploads; upload++) {
    const lines = recordsOf(workload, seed, upload, recordsPerUpload).map((record) =>
      csvLine(columns.map((column) => record[column] ?? null)),
    );
    await file.write(lines.join(''));
  }
  await file.close();
}

interface Loading {
  /** The time of the whole command, including its start, because that is how long a user waits. */
  readonly elapsedMs: number;
  readonly peakMb: number;
}

async function loadFile(
  file: string,
  folder: string,
  { headgate: server, key }: RunningHeadgate,
  expectedRecords: number,
): Promise<Loading> {
  const [program, ...args] = commandLine(['load', file, '--url', server.url, '--json']);
  const startedAtMs = performance.now();
  const child = spawn(program!, args, {
    cwd: folder,
    env: { ...process.env, HEADGATE_KEY: key },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  const said = Promise.all([text(child.stdout), text(child.stderr)]);
  const exited = once(child, 'exit').then(([code]) => ({ code, elapsedMs: performance.now() - startedAtMs }));
  const peakMb = await peakUntilEnded(child.pid!);
  const { code, elapsedMs } = await exited;
  const [out, err] = await said;
  process.removeListener('exit', killAtExit);
  if (code !== 0) throw new Error(`headgate load ended with ${code}: ${out}${err}`);
  const { total } = JSON.parse(out) as { readonly total: { readonly created: number } };
  if (total.created !== expectedRecords)
    throw new Error(`headgate load made ${total.created} records: ${out}`);
  return { elapsedMs, peakMb };
}

async function peakUntilEnded(pid: number): Promise<number> {
  let peakMb = 0;
  for (;;) {
    const memory = await residentMemory(pid);
    if (memory === null) return peakMb;
    peakMb = memory.peakMb;
    await sleep(SAMPLE_EVERY_MS);
  }
}
