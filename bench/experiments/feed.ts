// The feed of changes: how many records a second one follower reads from SQLite, and what followers cost that are up to
// date.

import { readdir, readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { headgate, type RunningHeadgate } from '../contenders/headgate.ts';
import { inRounds } from '../rounds.ts';
import { CLIENTS, type Experiment, figure, orderOf, perSecond } from './experiment.ts';

const PAGE_CHANGES = 10_000;
const LINE_FEED = 0x0a;
/** Enough for the last line, which has the position and the number of the last entry. */
const END_BYTES = 100;
const FOLLOWERS = 50;
const IDLE_MS = 5000;
/** Followers wait for up to 30 s, so those that started before the measurement still wait when it ends. */
const WAIT_S = 30;
const NS_PER_MS = 1e6;

interface Page {
  readonly lines: number;
  readonly next: string;
  readonly latest: number;
}

function readPage({ headgate: { url }, key }: RunningHeadgate, query: string): Promise<Page> {
  return new Promise((resolve, reject) => {
    const headers = { Authorization: `Bearer ${key}`, Accept: 'application/x-ndjson' };
    const sent = request(`${url}/v1/changes?limit=${PAGE_CHANGES}&${query}`, { headers }, (response) => {
      let lines = 0;
      let end = '';
      response.on('data', (chunk: Buffer) => {
        for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, at + 1)) lines++;
        end = (end + chunk.subarray(-END_BYTES).toString('latin1')).slice(-END_BYTES);
      });
      response.on('error', reject);
      response.on('end', () => {
        if (response.statusCode !== 200) reject(new Error(`the feed responds with ${response.statusCode}`));
        else resolve({ lines: lines - 1, ...JSON.parse(end.trimEnd().split('\n').at(-1)!) });
      });
    });
    sent.on('error', reject);
    sent.end();
  });
}

/** Reads the whole feed and returns the number of records. */
async function readAll(running: RunningHeadgate): Promise<number> {
  let count = 0;
  for (let after = '0'; ; ) {
    const { lines, next } = await readPage(running, `after=${after}`);
    if (lines === 0) return count;
    count += lines;
    after = next;
  }
}

/** Returns the processor time that all threads of a process have used so far. */
async function processorMs(pid: number): Promise<number> {
  const threads = await readdir(`/proc/${pid}/task`);
  const times = await Promise.all(
    threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/schedstat`, 'utf8')),
  );
  return times.reduce((sum, time) => sum + Number(time.split(' ', 1)[0]) / NS_PER_MS, 0);
}

export const feed: Experiment = async ({ plan, sqlite, say }) => {
  const running = await headgate('SQLite', sqlite).start(0);
  try {
    await running.upload(orderOf(plan, 'transactions'));
    await readAll(running);
    const turn = {
      contender: 'one follower',
      unit: 'records/s' as const,
      async measure() {
        const startedAtMs = performance.now();
        const count = await readAll(running);
        return perSecond({ count, elapsedMs: performance.now() - startedAtMs });
      },
    };
    const series = await inRounds(plan.rounds, [turn], say);
    const { latest } = await readPage(running, 'after=0');
    const followers = Array.from({ length: FOLLOWERS }, () =>
      readPage(running, `after=${latest}&wait=${WAIT_S}`).catch(() => null),
    );
    await sleep(1000);
    const { pid } = running.headgate.process;
    const beforeMs = await processorMs(pid!);
    await sleep(IDLE_MS);
    const usedMsPerSecond = ((await processorMs(pid!)) - beforeMs) / (IDLE_MS / 1000);
    say(`  ${FOLLOWERS} followers that are up to date: ${usedMsPerSecond} ms of processor time per second`);
    await running.headgate.stop();
    await Promise.all(followers);
    return {
      comparisons: [
        {
          id: 'feed',
          title: 'The feed of changes, SQLite',
          conditions: `${plan.uploads * plan.recordsPerUpload} transactions of ${CLIENTS} clients, as NDJSON, pages of ${PAGE_CHANGES}`,
          series,
        },
      ],
      figures: [figure('feed', series[0]!.values), figure('idleFollowers', [usedMsPerSecond])],
    };
  } finally {
    await running.stop();
  }
};
