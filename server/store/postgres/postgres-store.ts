// The store as its callers hold it, in any thread, with connections of its own.

import { type Store, StoreUnavailable } from '../store.ts';
import { catalogueTables } from '../tables.ts';
import { type Address, readAddress } from './address.ts';
import { openConnections } from './connections.ts';
import { type Claim, callsOf, listsOf, vital } from './places.ts';
import { createReadOperations } from './read-operations.ts';
import { createWriteOperations } from './write-operations.ts';

/** On a database that has been prepared. Nothing is connected before the first call. */
export function holdPostgresStore(address: Address): Store {
  const connections = openConnections(address);
  let isClosed = false;
  let underway = 0;
  let whenDrained: (() => void) | null = null;

  /** Refuses calls after the end, and lets the end wait for those before it. */
  const counted =
    <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      if (isClosed) throw new StoreUnavailable('the store is closed');
      underway++;
      try {
        return await call(...args);
      } finally {
        underway--;
        if (underway === 0) whenDrained?.();
      }
    };

  const close = async (): Promise<void> => {
    isClosed = true;
    if (underway > 0) await new Promise<void>((resolve) => (whenDrained = resolve));
    await connections.close();
  };
  let closing: Promise<void> | null = null;

  const writes = createWriteOperations(connections, catalogueTables);
  const reads = (claim: Claim) => createReadOperations(connections.for(claim), catalogueTables);
  const vitalReads = reads(vital);
  return {
    createOrganisation: counted(writes.createOrganisation),
    organisations: counted(vitalReads.organisations),
    addKey: counted(writes.addKey),
    findKey: counted(vitalReads.findKey),
    keysOf: counted(vitalReads.keysOf),
    replaceKey: counted(writes.replaceKey),
    revokeKey: counted(writes.revokeKey),
    noteKeysUsed: counted(writes.noteKeysUsed),
    existing: counted((owner, ...rest) => reads(callsOf(owner)).existing(owner, ...rest)),
    write: counted(writes.write),
    writeInteraction: counted(writes.writeInteraction),
    recall: counted((key, ...rest) => reads(callsOf(key.organisation)).recall(key, ...rest)),
    forgetExpired: counted(writes.forgetExpired),
    record: counted((owner, ...rest) => reads(callsOf(owner)).record(owner, ...rest)),
    records: counted((owner, ...rest) => reads(listsOf(owner)).records(owner, ...rest)),
    interaction: counted((owner, ...rest) => reads(callsOf(owner)).interaction(owner, ...rest)),
    interactions: counted((owner, ...rest) => reads(listsOf(owner)).interactions(owner, ...rest)),
    count: counted((owner, ...rest) => reads(listsOf(owner)).count(owner, ...rest)),
    ping: counted(vitalReads.ping),
    close: () => (closing ??= close()),
  };
}

/** The store in another thread than the one that opened it, which has prepared the database. */
export function attachPostgresStore(url: string): Store {
  return holdPostgresStore(readAddress(url));
}
