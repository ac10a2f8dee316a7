// The requests of the analytics measurements, and the analytics process of a server.

import { readdir, readFile } from 'node:fs/promises';
import type { RunningHeadgate } from '../contenders/headgate.ts';

export interface SqlResult {
  readonly rows: readonly unknown[][];
  readonly as_of: { readonly complete: boolean };
}

export async function runSql({ headgate, key }: RunningHeadgate, sql: string): Promise<SqlResult> {
  const response = await post(headgate.url, key, '/v1/sql', { sql });
  if (!response.ok) throw new Error(`the query failed: ${await response.text()}`);
  return (await response.json()) as SqlResult;
}

/** Returns the number of members, or null if the server does not have this endpoint. */
export async function previewSegment(
  { headgate, key }: RunningHeadgate,
  condition: object,
): Promise<number | null> {
  const response = await post(headgate.url, key, '/v1/segments/preview', { condition });
  if (response.status === 404) return null;
  if (!response.ok) throw new Error(`the preview failed: ${await response.text()}`);
  return ((await response.json()) as { count: number }).count;
}

function post(url: string, key: string, path: string, body: object): Promise<Response> {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
  return fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
}

/** Returns the time that `work` takes on average. */
export async function averageMs(times: number, work: () => Promise<unknown>): Promise<number> {
  const startedAtMs = performance.now();
  for (let time = 0; time < times; time++) await work();
  return (performance.now() - startedAtMs) / times;
}

/** Returns the process id of a server's analytics process. */
export async function analyticsPid({ headgate }: RunningHeadgate): Promise<number> {
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
    if (!new RegExp(`^PPid:\\s+${headgate.process.pid}$`, 'm').test(status)) continue;
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (command.includes('analytics-process.ts')) return Number(pid);
  }
  throw new Error('the server has no analytics process');
}
