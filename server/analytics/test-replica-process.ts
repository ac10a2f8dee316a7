// Brings a replica up to date in a process of its own, which a test can kill.

import { openStore } from '../store/open-store.ts';
import type { ReplicaDatabaseOptions } from './duckdb.ts';
import { Replica } from './replica.ts';

export interface ReplicaOrder {
  readonly database: string;
  readonly organisation: number;
  readonly path: string;
  readonly options: ReplicaDatabaseOptions;
}

const { database, organisation, path, options } = JSON.parse(process.argv[2]!) as ReplicaOrder;
const store = await openStore(database);
const replica = new Replica(path, options, store, organisation, () => {});
process.stdout.write('begins\n');
await replica.catchUp(await replica.wanted(), 60_000);
process.stdout.write('has caught up\n');
setInterval(() => {}, 1000);
