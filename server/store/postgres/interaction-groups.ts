// Writes the interactions of many callers in one statement, so that all of them wait for the disk and the network only
// once.

import { settledWithin } from '../../settled-within.ts';
import type { EntryOrigin } from '../ledger.ts';
import type { OrganisationNumber } from '../rows.ts';
import { StoreBusy, StoreUnavailable } from '../store.ts';
import { GivenUp, isOfStatement } from './errors.ts';
import type { OwnedRow, RowOutcome } from './upserts.ts';

/** An interaction, and what its ledger entry contains. `entry` is null if it gets no entry. */
export interface SentInteraction extends OwnedRow {
  readonly entry: EntryOrigin | null;
}

interface Waiting extends SentInteraction {
  resolve(outcome: RowOutcome): void;
  reject(error: unknown): void;
}

interface Line {
  waiting: Waiting[];
  isWriting: boolean;
}

/** `owner` is the organisation of all rows of the group, or null if they belong to several. */
type Write = (
  group: readonly SentInteraction[],
  owner: OrganisationNumber | null,
) => Promise<readonly RowOutcome[]>;

/** Limits the size of a statement. Usually far fewer interactions arrive during one commit. */
const MOST_IN_A_GROUP = 500;
const MOST_WAITING = 100_000;
const MOST_WAITING_APART = 10_000;
/** A group usually takes a few milliseconds. A group that takes this long may hang because of one organisation. */
const SLOW_AFTER_MS = 1000;

/**
 * Returns a function that writes one row as part of a group. Rows that arrive in the same turn of the event loop, or
 * while a group is being written, form the next group. An organisation that makes a group fail or hang must not harm
 * the others. Each organisation of such a group is therefore written separately, until one of its own groups has
 * succeeded.
 */
export function groupWrites(
  write: Write,
  slowAfterMs = SLOW_AFTER_MS,
): (sent: SentInteraction) => Promise<RowOutcome> {
  const together: Line = { waiting: [], isWriting: false };
  const apart = new Map<OrganisationNumber, Line>();

  const lineApart = (organisation: OrganisationNumber): Line => {
    const line = apart.get(organisation) ?? { waiting: [], isWriting: false };
    apart.set(organisation, line);
    return line;
  };

  const start = (line: Line, owner: OrganisationNumber | null): void => {
    if (line.isWriting) return;
    line.isWriting = true;
    setImmediate(() => void (owner === null ? writeTogether() : writeApart(line, owner)));
  };

  const writeTogether = async (): Promise<void> => {
    while (together.waiting.length > 0) {
      const group = together.waiting.splice(0, MOST_IN_A_GROUP);
      if (!(await settledWithin(writeOrSplit(group), slowAfterMs))) {
        for (const { organisation } of group) lineApart(organisation);
      }
    }
    together.isWriting = false;
  };

  /**
   * Writes the group. If only the statement failed or was aborted, the rows of each organisation are queued to be
   * written once more, separately from those of other organisations.
   */
  const writeOrSplit = async (group: readonly Waiting[]): Promise<void> => {
    const byOrganisation = Map.groupBy(group, ({ organisation }) => organisation);
    const [owner] = byOrganisation.size === 1 ? byOrganisation.keys() : [null];
    const error = await writeGroup(write, group, owner ?? null);
    if (error === null) return;
    // The rows can safely be written again: they keep their ids, so a row that was stored after all is found and not
    // stored twice.
    if (byOrganisation.size > 1 && (isOfStatement(error) || error instanceof GivenUp)) {
      for (const [organisation, rows] of byOrganisation) {
        const line = lineApart(organisation);
        line.waiting.unshift(...rows);
        start(line, organisation);
      }
    } else for (const { reject } of group) reject(error);
  };

  const writeApart = async (line: Line, owner: OrganisationNumber): Promise<void> => {
    while (line.waiting.length > 0) {
      const group = line.waiting.splice(0, MOST_IN_A_GROUP);
      const error = await writeGroup(write, group, owner);
      if (error === null) apart.delete(owner);
      // Also rejects the rows that are queued behind the group, because they would wait as long and then fail as well.
      else for (const { reject } of [...group, ...line.waiting.splice(0)]) reject(error);
    }
    line.isWriting = false;
  };

  return ({ organisation, row, entry }) => {
    const lineOfItsOwn = apart.get(organisation);
    const line = lineOfItsOwn ?? together;
    if (line.waiting.length >= (line === together ? MOST_WAITING : MOST_WAITING_APART)) {
      return Promise.reject(new StoreBusy(`${line.waiting.length} interactions already wait for PostgreSQL`));
    }
    const { promise, resolve, reject } = Promise.withResolvers<RowOutcome>();
    line.waiting.push({ organisation, row, entry, resolve, reject });
    start(line, lineOfItsOwn === undefined ? null : organisation);
    return promise;
  };
}

/**
 * Writes the group and resolves its rows. Returns the error if the store was unavailable. If the group fails because of
 * its data, each half is retried on its own, so that only the faulty row fails.
 */
async function writeGroup(
  write: Write,
  group: readonly Waiting[],
  owner: OrganisationNumber | null,
): Promise<StoreUnavailable | null> {
  try {
    const outcomes = await write(group, owner);
    group.forEach(({ resolve }, position) => {
      resolve(outcomes[position]!);
    });
    return null;
  } catch (error) {
    if (error instanceof StoreUnavailable) return error;
    if (group.length === 1) {
      group[0]!.reject(error);
      return null;
    }
    const middle = Math.ceil(group.length / 2);
    const first = await writeGroup(write, group.slice(0, middle), owner);
    const second = await writeGroup(write, group.slice(middle), owner);
    return first ?? second;
  }
}
