// `headgate migrate`: migrates a database to the current schema, and distributes its tables over a Citus cluster.

import { Failure } from '../failure.ts';
import { readSetting } from '../settings.ts';
import type { Migrated } from '../store/open-store.ts';
import type { StepProgress } from '../store/postgres/migrator.ts';
import type { Call } from './call.ts';
import { type ExitCode, exitCodes, failed, misused, printJson } from './io.ts';
import { progressLine, shownDuration } from './progress.ts';
import { isMissingFile, missingDatabase } from './with-store.ts';

export async function migrate({ io, option, isOn }: Call): Promise<ExitCode> {
  const database = readSetting('database', io.env, { database: option('database') });
  if (database instanceof Failure) return misused(io, database);
  if (isMissingFile(database)) return failed(io, missingDatabase(database));
  const { migrateDatabase } = await import('../store/open-store.ts');
  const line = progressLine(io);
  const say = (sentenceOfTable: string): void => {
    line.end();
    if (!isOn('json')) io.out(sentenceOfTable);
  };
  const migrated = await migrateDatabase(database, {
    onDistributed: (table) => say(`Distributed the table ${table}.`),
    onMadeLocal: (table) => say(`Brought the table ${table} back to the coordinator.`),
    onProgress: (progress) => line.show(sentence(progress)),
  }).finally(() => line.end());
  if (isOn('json')) return printJson(io, asJson(migrated));
  io.out(`The database is up to date, with version ${migrated.schemaVersion} of the schema.`);
  io.out(whereItLies(migrated));
  return exitCodes.done;
}

function sentence({ doing, elapsedMs, detail }: StepProgress): string {
  return `${doing}: ${detail === null ? '' : `${detail}, `}${shownDuration(elapsedMs / 1000)}`;
}

function whereItLies({ kind, distribution }: Migrated): string {
  if (kind === 'sqlite') return 'It is an SQLite file, on this machine.';
  if (distribution === null) return 'It is a PostgreSQL database without Citus, on one server.';
  const { distributed, nodes } = distribution;
  const already = distributed.length === 0 ? 'already ' : '';
  return `It is a Citus cluster; its tables are ${already}distributed over ${nodes} ${nodes === 1 ? 'node' : 'nodes'}.`;
}

function asJson({ kind, schemaVersion, distribution }: Migrated): object {
  if (distribution === null) return { database: kind, schema_version: schemaVersion, citus: null };
  const { distributed, madeLocal, nodes } = distribution;
  const citus = { distributed, made_local: madeLocal, nodes };
  return { database: kind, schema_version: schemaVersion, citus };
}
