// Headgate as a contender: the real executable, over HTTP, with an API key.

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
  /**
   * With `durationMs`, the bodies are sent repeatedly for that time, with different values each time. With `otherKey`,
   * another organisation uploads.
   */
  prepareUpload(order: UploadOrder, durationMs?: number, otherKey?: string): Promise<PreparedChild<Timed>>;
}

export interface HeadgateContender extends Contender {
  start(rowsPresent: number): Promise<RunningHeadgate>;
}

/** The uploads that warm up the JIT compiler. They are sent as dry runs, so that the table does not change. */
const warmUp: UploadOrder = {
  workload: 'transactions',
  seed: 5,
  uploads: 8,
  recordsPerUpload: 5000,
  clients: 2,
};

/** All load uses one key, so its rate limit is set too high to be reached. Requests are still counted against it. */
const environment = { HEADGATE_RATE_LIMIT: '1000000' };

/** Headgate logs to a file, as under a supervisor. Reading the log in this process would disturb the measurement. */
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
      const target = (workload: WorkloadName, query = '', ownKey = key): UploadTarget => ({
        url: `${running.url}/v1/data/${workloads[workload].type}${query}`,
        headers: { Authorization: `Bearer ${ownKey}` },
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
        prepareUpload: (order, durationMs, otherKey) =>
          prepareUploadOverHttp(target(order.workload, '', otherKey), order, durationMs),
        upload: (order) => uploadOverHttp(target(order.workload), order),
        stop,
      };
    },
  };
}
