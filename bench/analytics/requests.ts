// The requests of the analytics measurements, and the analytics process of a server.

import { readFile } from 'node:fs/promises';
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { childrenOf } from '../../tests/harness/worker-processes.ts';
import type { RunningHeadgate } from '../contenders/headgate.ts';

export interface SqlResult {
  readonly rows: readonly unknown[][];
  readonly as_of: { readonly complete: boolean };
}

export async function runSql({ headgate, key }: RunningHeadgate, sql: string): Promise<SqlResult> {
  const { status, body } = await post(headgate.url, key, '/v1/sql', { sql });
  if (status !== 200) throw new Error(`the query failed: ${body}`);
  return JSON.parse(body) as SqlResult;
}

/** Returns the number of members, or null if the server does not have this endpoint. */
export async function previewSegment(
  { headgate, key }: RunningHeadgate,
  condition: object,
): Promise<number | null> {
  const { status, body } = await post(headgate.url, key, '/v1/segments/preview', { condition });
  if (status === 404) return null;
  if (status !== 200) throw new Error(`the preview failed: ${body}`);
  return (JSON.parse(body) as { count: number }).count;
}

const agent = new Agent({ keepAlive: true });

interface Reply {
  readonly status: number;
  readonly body: string;
}

/** Uses `node:http`, because `fetch` takes up to 2 ms longer, which would count as time of the server. */
function post(url: string, key: string, path: string, body: object): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
  const read = async (response: IncomingMessage): Promise<void> =>
    resolve({ status: response.statusCode!, body: await text(response) });
  request(`${url}${path}`, { method: 'POST', headers, agent }, (response) => read(response).catch(reject))
    .on('error', reject)
    .end(JSON.stringify(body));
  return promise;
}

/** Returns the time that `work` takes on average. */
export async function averageMs(times: number, work: () => Promise<unknown>): Promise<number> {
  const startedAtMs = performance.now();
  for (let time = 0; time < times; time++) await work();
  return (performance.now() - startedAtMs) / times;
}

/** Returns the process ids of a server's replica processes. */
export async function replicaPids({ headgate }: RunningHeadgate): Promise<readonly number[]> {
  const [analytics] = await childrenOf(headgate.process.pid!);
  const pids: number[] = [];
  for (const pid of await childrenOf(analytics!)) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (command.includes('replica-process.ts')) pids.push(pid);
  }
  return pids;
}
