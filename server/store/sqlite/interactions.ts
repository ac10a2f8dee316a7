// Stores user interactions in SQLite.

import type { IdempotencyRecord, Written } from '../idempotency-records.ts';
import type { InteractionPage, InteractionStore } from '../interactions.ts';
import type { EntryOrigin } from '../ledger.ts';
import { interactionListing, interactionPosition } from '../listing.ts';
import { STEP_ENTRIES } from '../page-limits.ts';
import type { OrganisationNumber, Tally } from '../rows.ts';
import { catalogueTables } from '../tables.ts';
import { packIdempotencyRecord, responseBytes, writeOnce } from './idempotency-records.ts';
import type { LedgerWriter } from './ledger.ts';
import type { JsonRow } from './packed-rows.ts';
import { countOf, type PackedPage, pageOf, rowByKey, rowsOf, type Steps } from './pages.ts';
import type { Prepare } from './statements.ts';
import type { Callers } from './thread-operations.ts';
import type { Upserts } from './upserts.ts';

const table = catalogueTables.interactions;

export function interactionLookUps(prepare: Prepare) {
  return {
    interaction: (organisation: OrganisationNumber, interactionId: string): string =>
      rowByKey(prepare, table, organisation, interactionId),
  };
}

export function interactionLists(prepare: Prepare) {
  return {
    interactions: (organisation: OrganisationNumber, page: InteractionPage): Steps<PackedPage> =>
      pageOf(prepare, organisation, interactionListing(table, page), page.limit),

    countInteractions: (organisation: OrganisationNumber): Steps<number> =>
      countOf(prepare, table, organisation),
  };
}

export function interactionWrites(prepare: Prepare, upserts: Upserts, ledger: LedgerWriter) {
  return {
    /**
     * Returns the outcome as a single word if there is no idempotency record. Such results cross threads thousands of
     * times a second, and a word crosses faster than an object.
     */
    writeInteraction(
      organisation: OrganisationNumber,
      sentJson: string,
      idempotencyRecord: IdempotencyRecord | null,
    ): Written | keyof Tally {
      const [entry, ...rows] = JSON.parse(sentJson) as [EntryOrigin | null, ...JsonRow[]];
      const onChanged = (id: string): void => {
        if (entry !== null) ledger.addInteraction(organisation, entry, id);
      };
      const write = (): readonly Tally[] =>
        rows.map((row) => upserts.row(table, organisation, row, onChanged));
      if (idempotencyRecord !== null || rows.length === 0)
        return writeOnce(prepare, idempotencyRecord, write);
      const [{ created, updated }] = write() as [Tally];
      return created === 1 ? 'created' : updated === 1 ? 'updated' : 'unchanged';
    },
  };
}

export function interactionStore(callers: Callers): InteractionStore {
  const { reader, lister } = callers;
  return {
    writeInteraction: interactionWriter(callers),
    async interaction(organisation, interactionId) {
      const rowsJson = await reader.call('interaction', [organisation, interactionId], { organisation });
      return rowsOf(rowsJson)[0] ?? null;
    },
    async interactions(organisation, page) {
      // Estimates the rows that one step reads. Without filters, a step reads only the rows of the page.
      const rows = Object.keys(page.equal).length === 0 ? page.limit : STEP_ENTRIES;
      const options = { organisation, rows };
      const { rowsJson, next } = await lister.call('interactions', [organisation, page], options);
      return { rows: rowsOf(rowsJson), next: next === null ? null : interactionPosition(next) };
    },
    countInteractions: (organisation) =>
      lister.call('countInteractions', [organisation], { organisation, rows: STEP_ENTRIES }),
  };
}

export function interactionWriter({ writer }: Pick<Callers, 'writer'>): InteractionStore['writeInteraction'] {
  return async ({ organisation, row, idempotencyRecord: given, entry }) => {
    // One text crosses threads faster than an object.
    const sentJson = JSON.stringify(row === null ? [entry] : [entry, row]);
    const idempotencyRecord = packIdempotencyRecord(given);
    const options = { organisation, bytes: sentJson.length + responseBytes(idempotencyRecord) };
    const written = await writer.call(
      'writeInteraction',
      [organisation, sentJson, idempotencyRecord],
      options,
    );
    return typeof written === 'string'
      ? { kind: 'written', tallies: [tallyOf(written)], seq: null }
      : written;
  };
}

function tallyOf(outcome: keyof Tally): Tally {
  return { created: 0, updated: 0, unchanged: 0, [outcome]: 1 };
}
