// Reads the log lines and the metrics of a running Headgate.

import type { Headgate } from './headgate.ts';
import { waitUntil } from './waiting.ts';

export interface LogLine {
  readonly level: string;
  readonly request_id?: string;
  readonly [name: string]: unknown;
}

export function logLines({ output }: Headgate): readonly LogLine[] {
  return output()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as LogLine);
}

/** Resolves to the log line of the request once it is written. */
export async function lineOf(headgate: Headgate, requestId: string | null): Promise<LogLine> {
  const find = (): LogLine | undefined =>
    logLines(headgate).find(({ request_id, method }) => request_id === requestId && method !== undefined);
  await waitUntil(`there is a line for request ${requestId}`, () => find() !== undefined);
  return find()!;
}

/** The values of /metrics by series: `name{label="value"}`. */
export type Samples = ReadonlyMap<string, number>;

export function metricsUrl({ output }: Headgate): string {
  const url = /^metrics at (\S+)$/m.exec(output())?.[1];
  if (url === undefined) throw new Error(`no metrics are served: ${output()}`);
  return url;
}

const SCRAPE_TIMEOUT_MS = 30_000;

export async function scrape(headgate: Headgate, timeoutMs = SCRAPE_TIMEOUT_MS): Promise<Samples> {
  const response = await fetch(metricsUrl(headgate), { signal: AbortSignal.timeout(timeoutMs) });
  if (response.status !== 200) throw new Error(`/metrics answered ${response.status}`);
  const lines = (await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const space = line.lastIndexOf(' ');
      return [line.slice(0, space), Number(line.slice(space + 1))];
    }),
  );
}

/** Returns by how much the series have grown, without those that have not. */
export function growth(before: Samples, after: Samples, name: string): Record<string, number> {
  const grown = [...after]
    .filter(([series]) => series === name || series.startsWith(`${name}{`))
    .map(([series, value]) => [series.slice(name.length), value - (before.get(series) ?? 0)] as const)
    .filter(([, value]) => value !== 0);
  return Object.fromEntries(grown);
}
