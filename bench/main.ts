// Runs `npm run bench`: compares Headgate with upper bounds and peers, prints tables, and writes bench/results/.

import { join } from 'node:path';
import { parseArgs } from 'node:util';
import fastify from 'fastify';
import { directus, directusPeer } from './contenders/directus.ts';
import { nocodb, nocodbPeer } from './contenders/nocodb/contender.ts';
import { type Peer as InstalledPeer, installPeer } from './contenders/peers.ts';
import { textbook, textbookPeer } from './contenders/textbook/contender.ts';
import { PostgresDatabases, SqliteDatabases } from './databases.ts';
import { analytics } from './experiments/analytics.ts';
import type { Bench, Experiment, Findings, Peer, Peers } from './experiments/experiment.ts';
import { feed } from './experiments/feed.ts';
import { interactions } from './experiments/interactions.ts';
import { livez } from './experiments/latency.ts';
import { load } from './experiments/load.ts';
import { neighbours } from './experiments/neighbours.ts';
import { uploadsBesidePeers } from './experiments/peers.ts';
import { memory, start } from './experiments/resources.ts';
import {
  uploadsByClients,
  uploadsToFullTables,
  uploadsToGrowingTable,
  uploadsToPostgres,
  uploadsToSqlite,
} from './experiments/uploads.ts';
import { keepRecordTextsIn } from './load/record-texts.ts';
import { type Plan, plans } from './plan.ts';
import { headgateVersion, thisMachine, versionsOf } from './report/machine.ts';
import type { Mode, Results } from './report/results.ts';
import { terminalReport } from './report/table.ts';
import { writeResults } from './report/write.ts';

const experiments: Readonly<Record<string, Experiment>> = {
  sqlite: uploadsToSqlite,
  postgres: uploadsToPostgres,
  peers: uploadsBesidePeers,
  interactions,
  feed,
  analytics,
  livez,
  neighbours,
  start,
  rows: uploadsToFullTables,
  clients: uploadsByClients,
  growth: uploadsToGrowingTable,
  load,
  memory,
};

const help = `npm run bench -- [options]

  --full           the long one: more uploads, peers in every round, 1 to 16 clients (clients), up to 10 million rows,
                   a table that grows (growth), loading a file (load), ten minutes of memory
  --smoke          next to nothing, to see that it works; its numbers mean nothing
  --only NAMES     some experiments, by comma: ${Object.keys(experiments).join(', ')}
  --rounds N       another number of rounds
  --no-peers       leave out what would have to be installed
  --out FOLDER     write the results there instead of bench/results`;

interface Options {
  readonly plan: Plan;
  readonly chosen: readonly string[];
  readonly out: string;
  readonly command: string;
}

class WrongOption extends Error {}

function readOptions(args: readonly string[]): Options | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      full: { type: 'boolean', default: false },
      smoke: { type: 'boolean', default: false },
      only: { type: 'string' },
      rounds: { type: 'string' },
      'no-peers': { type: 'boolean', default: false },
      out: { type: 'string', default: new URL('./results', import.meta.url).pathname },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return null;
  if (values.full && values.smoke) throw new WrongOption('--full and --smoke exclude each other');
  const mode: Mode = values.full ? 'full' : values.smoke ? 'smoke' : 'quick';
  const plan = plans[mode];
  const rounds = values.rounds === undefined ? null : Number(values.rounds);
  if (rounds !== null && (!Number.isInteger(rounds) || rounds < 1)) {
    throw new WrongOption('--rounds must be a whole number from 1');
  }
  const chosen = values.only?.split(',') ?? Object.keys(experiments);
  const unknown = chosen.find((name) => !Object.hasOwn(experiments, name));
  if (unknown !== undefined) throw new WrongOption(`there is no experiment ${unknown}`);
  const told = [
    ...(values.full ? ['--full'] : []),
    ...(values.smoke ? ['--smoke'] : []),
    ...(values.only === undefined ? [] : ['--only', values.only]),
    ...(values.rounds === undefined ? [] : ['--rounds', values.rounds]),
    ...(values['no-peers'] ? ['--no-peers'] : []),
  ];
  return {
    plan: {
      ...plan,
      rounds: rounds ?? plan.rounds,
      peerRounds: rounds ?? plan.peerRounds,
      attackRounds: rounds ?? plan.attackRounds,
      withPeers: plan.withPeers && !values['no-peers'] && chosen.includes('peers'),
    },
    chosen,
    out: values.out,
    command: ['npm run bench', ...(told.length === 0 ? [] : ['--', ...told])].join(' '),
  };
}

interface Installing {
  readonly peers: Peers;
  readonly versions: Readonly<Record<string, string>>;
  readonly leftOut: Results['leftOut'];
}

/** Installs the peers. Returns the installed ones, and for each of the others the reason why it is left out. */
async function installPeers(
  { withPeers }: Plan,
  postgres: PostgresDatabases,
  say: Bench['say'],
): Promise<Installing> {
  const onSqlite: Peer[] = [];
  const onPostgres: Peer[] = [];
  const versions: Record<string, string> = {};
  const leftOut: { contender: string; reason: string }[] = [];
  const newDatabase = () => postgres.server.newDatabase();
  const add = async (peer: InstalledPeer, join: (folder: string) => void): Promise<void> => {
    if (!withPeers) {
      leftOut.push({ contender: peer.name, reason: 'not asked for' });
      return;
    }
    say(`installing ${peer.name} ${peer.version}, unless it is there`);
    const installed = await installPeer(peer);
    if ('reason' in installed) {
      leftOut.push({ contender: peer.name, reason: installed.reason });
      return;
    }
    Object.assign(versions, peer.packages);
    join(installed.folder);
  };
  await add(textbookPeer, (folder) => {
    onSqlite.push({ contender: textbook('sqlite', folder), claim: 'toTextbookOnSqlite' });
    const contender = textbook('postgres', folder, newDatabase);
    onPostgres.push({ contender, claim: 'toTextbookOnPostgres' });
  });
  await add(directusPeer, (folder) =>
    onPostgres.push({ contender: directus(folder, newDatabase), claim: 'toDirectus' }),
  );
  await add(nocodbPeer, (folder) => onPostgres.push({ contender: nocodb(folder, newDatabase), claim: null }));
  return { peers: { onSqlite, onPostgres }, versions, leftOut };
}

function isEmpty({ comparisons, figures }: Findings): boolean {
  return comparisons.length + figures.length === 0;
}

async function run({ plan, chosen, out, command }: Options): Promise<void> {
  const startedAt = new Date();
  const startedAtMs = performance.now();
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  const sqlite = await SqliteDatabases.create();
  keepRecordTextsIn(join(sqlite.folder, 'records'));
  const postgres = await PostgresDatabases.create();
  const { peers, versions, leftOut: peersLeftOut } = await installPeers(plan, postgres, say);
  // A failed experiment is added here and does not end the run, so that the results of the others are kept.
  const leftOut = [...peersLeftOut];
  const bench: Bench = { plan, sqlite, postgres, peers, say };
  const found: Findings[] = [];
  let hasFailed = false;
  for (const name of chosen) {
    say(name);
    const beganAtMs = performance.now();
    try {
      const findings = await experiments[name]!(bench);
      say(
        isEmpty(findings)
          ? '  no part of this run'
          : `  took ${Math.round((performance.now() - beganAtMs) / 1000)} s`,
      );
      found.push(findings);
    } catch (error) {
      hasFailed = true;
      leftOut.push({ contender: `the experiment ${name}`, reason: (error as Error).message });
      say(`  failed: ${(error as Error).stack}`);
    }
  }
  if (hasFailed) process.exitCode = 1;
  if (found.every(isEmpty)) {
    if (hasFailed) return;
    throw new WrongOption(`nothing of ${chosen.join(', ')} is part of such a run; --full has all`);
  }
  const results: Results = {
    startedAt: startedAt.toISOString(),
    elapsedMs: performance.now() - startedAtMs,
    mode: plan.mode,
    command,
    machine: await thisMachine(sqlite.folder),
    versions: versionsOf({
      Headgate: await headgateVersion(),
      Fastify: fastify().version,
      PostgreSQL: await postgres.version(),
      ...versions,
    }),
    figures: found.flatMap(({ figures }) => figures),
    comparisons: found.flatMap(({ comparisons }) => comparisons),
    leftOut,
  };
  process.stdout.write(terminalReport(results));
  for (const path of await writeResults(out, results)) say(`written: ${path}`);
}

// Exits by `process.exit`, because the handlers that clean up do not run if a signal ends the process.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

try {
  const options = readOptions(process.argv.slice(2));
  if (options === null) process.stdout.write(`${help}\n`);
  else await run(options);
} catch (error) {
  const isWrongOption =
    error instanceof WrongOption || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS');
  if (!isWrongOption) throw error;
  process.stderr.write(`${(error as Error).message}\n\n${help}\n`);
  process.exitCode = 2;
}
