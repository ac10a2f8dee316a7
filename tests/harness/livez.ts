// Measures how quickly /livez responds to requests at a steady pace while other work runs.

import assert from 'node:assert/strict';
import { Agent, get } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';

const ASK_EVERY_MS = 10;
const WARM_UP_REQUESTS = 50;

export interface LivezTimes {
  readonly answers: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly longestMs: number;
  /** How late this process itself was woken at the 99th percentile: the delay that the machine alone adds. */
  readonly ownP99Ms: number;
}

export async function timesOfLivezDuring(url: string, work: () => Promise<void>): Promise<LivezTimes> {
  const agent = new Agent({ keepAlive: true });
  try {
    for (let warmUp = 0; warmUp < WARM_UP_REQUESTS; warmUp++) await timeOfLivez(url, agent);
    const ownDelay = monitorEventLoopDelay({ resolution: ASK_EVERY_MS });
    ownDelay.enable();
    const startedAtMs = performance.now();
    // Requests are sent on time, even if the last one has no response yet: a slow response must not hide the next.
    const asked: Promise<number>[] = [];
    const asking = setInterval(() => asked.push(timeOfLivez(url, agent)), ASK_EVERY_MS);
    await work().finally(() => clearInterval(asking));
    ownDelay.disable();
    const elapsedMs = performance.now() - startedAtMs;
    const timesMs = (await Promise.all(asked)).sort((one, other) => one - other);
    assert.ok(timesMs.length >= elapsedMs / ASK_EVERY_MS / 4, 'the measuring process was itself held up');
    const percentileMs = (share: number): number => timesMs[Math.ceil(timesMs.length * share) - 1]!;
    return {
      answers: timesMs.length,
      p50Ms: percentileMs(0.5),
      p99Ms: percentileMs(0.99),
      longestMs: percentileMs(1),
      ownP99Ms: Math.max(0, ownDelay.percentile(99) / 1e6 - ASK_EVERY_MS),
    };
  } finally {
    agent.destroy();
  }
}

function timeOfLivez(url: string, agent: Agent): Promise<number> {
  const startedAtMs = performance.now();
  return new Promise((resolve, reject) => {
    get(`${url}/livez`, { agent }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`/livez answered ${response.statusCode}`));
      response.resume().on('end', () => resolve(performance.now() - startedAtMs));
    }).on('error', reject);
  });
}
