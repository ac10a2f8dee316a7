// Stores user interactions in PostgreSQL.

import { INTERACTIONS } from '@headgate/catalogue/record-types.ts';
import type { InteractionStore } from '../interactions.ts';
import { interactionListing, interactionPosition } from '../listing.ts';
import { catalogueTables } from '../tables.ts';
import { callsOf, listsOf, mixedGroups } from './connection-slots.ts';
import type { Connections, Run } from './connections.ts';
import { RowExists } from './errors.ts';
import { writeOnce } from './idempotency-records.ts';
import { groupWrites, type SentInteraction } from './interaction-groups.ts';
import { type AppendedEntry, appendEntries } from './ledger.ts';
import { countOf, pageOf, rowByKey } from './pages.ts';
import { insertion, type RowOutcome, tallyOf, upsert } from './upserts.ts';

const table = catalogueTables.interactions;

const idPosition = table.columns.findIndex(({ name }) => name === table.key);

export function interactionStore(connections: Connections): InteractionStore {
  const writeGrouped = groupWrites(async (group, owner) => {
    const { transaction } = connections.for(owner === null ? mixedGroups : callsOf(owner));
    try {
      return await transaction(({ run }) => insertAll(run, group));
    } catch (error) {
      if (error instanceof RowExists) return transaction(({ run }) => mergeAll(run, group));
      throw error;
    }
  });
  return {
    async writeInteraction({ organisation, row, idempotencyRecord, entry }) {
      const sent = row === null ? [] : [{ organisation, row, entry }];
      if (idempotencyRecord === null) {
        const outcomes = await Promise.all(sent.map(writeGrouped));
        return { kind: 'written', tallies: outcomes.map((outcome) => tallyOf([outcome])), seq: null };
      }
      return connections.for(callsOf(organisation)).transaction(async ({ run }) => {
        let outcomes: readonly RowOutcome[] = [];
        const written = await writeOnce(run, idempotencyRecord, async () => {
          outcomes = await upsert(run, table, sent);
          return outcomes.map((outcome) => tallyOf([outcome]));
        });
        await appendEntries(run, entriesOf(sent, outcomes));
        return written;
      });
    },

    interaction: (organisation, interactionId) =>
      rowByKey(connections.for(callsOf(organisation)).run, table, organisation, interactionId),

    async interactions(organisation, page) {
      const listing = interactionListing(table, page);
      const sessions = connections.for(listsOf(organisation));
      const { rows, next } = await pageOf(sessions, organisation, listing, page.limit);
      return { rows, next: next === null ? null : interactionPosition(next) };
    },

    countInteractions: (organisation) => countOf(connections.for(listsOf(organisation)), table, organisation),
  };
}

/**
 * Inserts the interactions and adds their entries in one statement. Throws a RowExists if one of them is stored, which
 * is rare: an id is stored only if its group is written again.
 */
async function insertAll(run: Run, group: readonly SentInteraction[]): Promise<readonly RowOutcome[]> {
  const outcomes = group.map((): RowOutcome => 'created');
  const entries = entriesOf(group, outcomes);
  if (entries.length === 0) return mergeAll(run, group);
  await appendEntries(run, entries, await insertion(table, group));
  return outcomes;
}

async function mergeAll(run: Run, group: readonly SentInteraction[]): Promise<readonly RowOutcome[]> {
  const outcomes = await upsert(run, table, group);
  await appendEntries(run, entriesOf(group, outcomes));
  return outcomes;
}

/** Returns one entry for the stored interactions of each key. */
function entriesOf(
  group: readonly SentInteraction[],
  outcomes: readonly RowOutcome[],
): readonly AppendedEntry[] {
  const stored = group.filter(({ entry }, at) => entry !== null && outcomes[at] === 'created');
  return [...Map.groupBy(stored, ({ entry }) => entry!.keyId).values()].map((ofKey): AppendedEntry => {
    const [{ organisation, entry }] = ofKey as [SentInteraction];
    const bytes = ofKey.reduce((sum, sent) => sum + sent.entry!.bytes, 0);
    return {
      organisation,
      type: INTERACTIONS,
      entry: { ...entry!, bytes, received: ofKey.length, rejected: 0, causesJson: null },
      tally: { created: ofKey.length, updated: 0 },
      ids: ofKey.map(({ row }) => row[idPosition] as string),
    };
  });
}
