// Headgate itself: the real executable, over real HTTP, with a real key.

import { openSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Headgate, startHeadgate } from '../../tests/harness/headgate.ts';
import type { PreparedChild } from '../../tests/harness/prepared-child.ts';
import type { BenchDatabases } from '../databases.ts';
import type { Timed, UploadOrder, UploadTarget } from '../load/uploads.ts';
import { type WorkloadName, workloads } from '../workloads.ts';
import { type Contender, prepareUploadOverHttp, type RunningContender, uploadOverHttp } from './contender.ts';

export interface RunningHeadgate extends RunningContender {
  readonly headgate: Headgate;
  readonly key: string;
  /** `durationMs`: the bodies again and again for so long, each time with other values. */
  prepareUpload(order: UploadOrder, durationMs?: number): Promise<PreparedChild<Timed>>;
}

export interface HeadgateContender extends Contender {
  start(rowsPresent: number): Promise<RunningHeadgate>;
}

/** Dry runs let the compiler learn what it needs, and leave the table as it is. */
const warmUp: UploadOrder = {
  workload: 'transactions',
  seed: 5,
  uploads: 8,
  recordsPerUpload: 5000,
  clients: 2,
};

/** Counted as usual, but never reached: all load comes under one key. */
const environment = { HEADGATE_RATE_LIMIT: '1000000' };

/** As under a supervisor. Read by this process, the lines would take of the cores that are measured. */
const logFile = newLogFile();

function newLogFile(): number {
  const path = join(tmpdir(), `headgate-bench-${process.pid}.log`);
  const descriptor = openSync(path, 'w');
  unlinkSync(path);
  return descriptor;
}

export function headgate(store: string, databases: BenchDatabases): HeadgateContender {
  return {
    name: `Headgate on ${store}`,
    async start(rowsPresent) {
      const { database, key, remove } = await databases.newDatabase(rowsPresent);
      const running = await startHeadgate(database, environment, logFile);
      const target = (workload: WorkloadName, query = ''): UploadTarget => ({
        url: `${running.url}/v1/data/${workloads[workload].type}${query}`,
        headers: { Authorization: `Bearer ${key}` },
        opening: '{"records":[',
        closing: ']}',
      });
      const killAtExit = (): void => void running.process.kill('SIGKILL');
      process.once('exit', killAtExit);
      const stop = async (): Promise<void> => {
        await running.stop();
        process.removeListener('exit', killAtExit);
        await remove();
      };
      try {
        await uploadOverHttp(target('transactions', '?dry_run=true'), warmUp);
      } catch (error) {
        await stop();
        throw error;
      }
      return {
        headgate: running,
        key,
        prepareUpload: (order, durationMs) =>
          prepareUploadOverHttp(target(order.workload), order, durationMs),
        upload: (order) => uploadOverHttp(target(order.workload), order),
        stop,
      };
    },
  };
}
