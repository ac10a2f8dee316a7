// Stores user interactions in PostgreSQL.

import type { InteractionStore } from '../interactions.ts';
import { interactionListing, interactionPosition } from '../listing.ts';
import { catalogueTables } from '../tables.ts';
import { callsOf, listsOf, mixedGroups } from './connection-slots.ts';
import type { Connections } from './connections.ts';
import { writeOnce } from './idempotency-records.ts';
import { groupWrites } from './interaction-groups.ts';
import { countOf, pageOf, rowByKey } from './pages.ts';
import { tallyOf, upsert } from './upserts.ts';

const table = catalogueTables.interactions;

export function interactionStore(connections: Connections): InteractionStore {
  const writeGrouped = groupWrites((group, owner) =>
    upsert(connections.for(owner === null ? mixedGroups : callsOf(owner)).run, table, group),
  );
  return {
    async writeInteraction({ organisation, row, idempotencyRecord }) {
      const owned = row === null ? [] : [{ organisation, row }];
      if (idempotencyRecord === null) {
        const outcomes = await Promise.all(owned.map(writeGrouped));
        return { kind: 'written', tallies: outcomes.map((outcome) => tallyOf([outcome])) };
      }
      return connections.for(callsOf(organisation)).transaction(({ run }) =>
        writeOnce(run, idempotencyRecord, async () => {
          const outcomes = await upsert(run, table, owned);
          return outcomes.map((outcome) => tallyOf([outcome]));
        }),
      );
    },

    interaction: (organisation, interactionId) =>
      rowByKey(connections.for(callsOf(organisation)).run, table, organisation, interactionId),

    async interactions(organisation, page) {
      const listing = interactionListing(table, page);
      const sessions = connections.for(listsOf(organisation));
      const { rows, next } = await pageOf(sessions, organisation, listing, page.limit);
      return { rows, next: next === null ? null : interactionPosition(next) };
    },

    countInteractions: (organisation) =>
      countOf(connections.for(listsOf(organisation)).run, table, organisation),
  };
}
