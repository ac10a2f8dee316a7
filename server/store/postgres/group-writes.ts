// Many callers' interactions in one statement: the disk and the network are waited for once for all of them.

import { StoreUnavailable } from '../store.ts';
import type { Fate, OwnedRow } from './upsert.ts';

interface Waiting extends OwnedRow {
  resolve(fate: Fate): void;
  reject(error: unknown): void;
}

/** Far more than arrive during one commit; bounds the size of a statement. */
const MOST_IN_A_GROUP = 500;
const MOST_WAITING = 100_000;

/** What arrives in the same turn, or while a group is being written, forms the next group. */
export function groupWrites(
  write: (group: readonly OwnedRow[]) => Promise<readonly Fate[]>,
): (owned: OwnedRow) => Promise<Fate> {
  let waiting: Waiting[] = [];
  let isWriting = false;

  const writeWaiting = async (): Promise<void> => {
    while (waiting.length > 0) {
      const group = waiting.slice(0, MOST_IN_A_GROUP);
      waiting = waiting.slice(MOST_IN_A_GROUP);
      await writeTogether(write, group);
    }
    isWriting = false;
  };

  return ({ organisation, row }) => {
    if (waiting.length >= MOST_WAITING) {
      return Promise.reject(
        new StoreUnavailable(`${waiting.length} interactions already wait for PostgreSQL`),
      );
    }
    const { promise, resolve, reject } = Promise.withResolvers<Fate>();
    waiting.push({ organisation, row, resolve, reject });
    if (!isWriting) {
      isWriting = true;
      setImmediate(() => void writeWaiting());
    }
    return promise;
  };
}

/** Where a group fails by its data each half is tried by itself, so that in the end only the culprit fails. */
async function writeTogether(
  write: (group: readonly OwnedRow[]) => Promise<readonly Fate[]>,
  group: readonly Waiting[],
): Promise<void> {
  try {
    const fates = await write(group);
    group.forEach(({ resolve }, position) => {
      resolve(fates[position]!);
    });
  } catch (error) {
    if (group.length === 1 || error instanceof StoreUnavailable) {
      for (const { reject } of group) reject(error);
      return;
    }
    const middle = Math.ceil(group.length / 2);
    await writeTogether(write, group.slice(0, middle));
    await writeTogether(write, group.slice(middle));
  }
}
