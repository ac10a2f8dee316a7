// Compares this checkout of Headgate with another one, usually an earlier commit, in the same rounds:
//
//   npm run bench:before -- FOLDER [ROUNDS]
//
// FOLDER is a checkout with its dependencies installed. Its own code starts its server and makes its databases.

import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { headgate } from './contenders/headgate.ts';
import { PostgresDatabases, SqliteDatabases } from './databases.ts';
import { orderOf, uploadTurn } from './experiments/experiment.ts';
import { interactionTurns } from './experiments/interactions.ts';
import { keepRecordTextsIn } from './load/record-texts.ts';
import { plans } from './plan.ts';
import { median, ratioPerRound } from './report/statistics.ts';
import { inRounds, type Turn } from './rounds.ts';

const SMALL_UPLOADS = 4000;
const CLIENTS_OF_SMALL_UPLOADS = 16;
const DEFAULT_ROUNDS = 5;

const [folder, rounds = String(DEFAULT_ROUNDS)] = process.argv.slice(2);
if (folder === undefined || !Number.isInteger(Number(rounds))) {
  process.stderr.write('npm run bench:before -- FOLDER [ROUNDS]\n');
  process.exit(2);
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

const other = async <Module>(path: string): Promise<Module> =>
  (await import(pathToFileURL(join(resolve(folder), path)).href)) as Module;
const { headgate: headgateBefore } = await other<typeof import('./contenders/headgate.ts')>(
  'bench/contenders/headgate.ts',
);
const databasesBefore = await other<typeof import('./databases.ts')>('bench/databases.ts');

const say = (line: string): void => void process.stderr.write(`${line}\n`);
const sqlite = await SqliteDatabases.create();
keepRecordTextsIn(join(sqlite.folder, 'records'));
const stores = [
  { name: 'SQLite', now: sqlite, before: await databasesBefore.SqliteDatabases.create() },
  {
    name: 'PostgreSQL',
    now: await PostgresDatabases.create(),
    before: await databasesBefore.PostgresDatabases.create(),
  },
];
const plan = plans.quick;
const orders = {
  'transactions, 5000 at once, 4 clients': orderOf(plan, 'transactions'),
  'interactions, 5000 at once, 4 clients': orderOf(plan, 'interactions'),
  'transactions, 1 at a time, 16 clients': {
    ...orderOf(plan, 'transactions', CLIENTS_OF_SMALL_UPLOADS),
    uploads: SMALL_UPLOADS,
    recordsPerUpload: 1,
  },
};

async function compare(title: string, turns: readonly Turn[]): Promise<void> {
  const [before, now] = await inRounds(Number(rounds), turns, say);
  const ratios = ratioPerRound(now!, before!);
  const shown = ratios.map((ratio) => ratio.toFixed(3)).join(' ');
  process.stdout.write(`${title}: ${median(ratios).toFixed(3)} (${shown})\n`);
}

for (const { name, now, before } of stores) {
  const contenders = [
    { ...headgateBefore(name, before), name: 'before' },
    { ...headgate(name, now), name: 'now' },
  ];
  for (const [title, order] of Object.entries(orders)) {
    await compare(
      `${name}, ${title}`,
      contenders.map((contender) => uploadTurn(contender, 0, order)),
    );
  }
  await using running = await interactionTurns(contenders, plan);
  await compare(`${name}, single interactions, ${plan.connections} connections`, running.turns);
}
