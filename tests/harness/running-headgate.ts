// One server for a whole suite: started before its tests, stopped and removed after them.

import { after, before } from 'node:test';
import { type Api, apiOf } from './api.ts';
import type { TestStore } from './for-each-store.ts';
import { type Environment, type Headgate, startHeadgate } from './headgate.ts';

export interface RunningHeadgate {
  /** For use within tests and hooks only: no server runs while suites are being declared. */
  readonly headgate: Headgate;
  /** Returns a client of a new organisation, with a key of all scopes, or of the given ones. */
  newApi(scopes?: readonly string[]): Promise<Api>;
}

export function runningHeadgate(store: TestStore, environment: Environment = {}): RunningHeadgate {
  let running: { headgate: Headgate; remove(): Promise<void> } | undefined;
  const headgate = (): Headgate => {
    if (running === undefined) throw new Error('the server of this suite is not running');
    return running.headgate;
  };
  before(async () => {
    const { database, remove } = await store.newDatabase();
    try {
      running = { headgate: await startHeadgate(database, environment), remove };
    } catch (error) {
      await remove();
      throw error;
    }
  });
  after(async () => {
    await running?.headgate.stop();
    await running?.remove();
  });
  return {
    get headgate() {
      return headgate();
    },
    async newApi(scopes) {
      const { key } = await headgate().newKey(undefined, scopes);
      return apiOf(headgate().url, key);
    },
  };
}
