// Reads whole lists for the tests of stores, page after page.

import type { RecordTypeName } from '@headgate/catalogue/record-types.ts';
import type { InteractionPage, InteractionPosition } from './interactions.ts';
import type { RecordPage } from './records.ts';
import type { OrganisationNumber, Page, Row } from './rows.ts';
import type { Store } from './store.ts';

const LIMIT = 1000;

export async function everyRecord(
  store: Store,
  organisation: OrganisationNumber,
  type: RecordTypeName,
  given: Partial<RecordPage> = {},
): Promise<readonly Row[]> {
  const page = { includeDeleted: true, limit: LIMIT, ...given };
  return everyRow<string>((afterId) => store.records(organisation, type, { ...page, afterId }));
}

export async function everyInteraction(
  store: Store,
  organisation: OrganisationNumber,
  given: Partial<InteractionPage> = {},
): Promise<readonly Row[]> {
  const page = { equal: {}, from: null, to: null, limit: LIMIT, ...given };
  return everyRow<InteractionPosition>((before) => store.interactions(organisation, { ...page, before }));
}

async function everyRow<Position>(
  read: (position: Position | null) => Promise<Page<Position>>,
): Promise<readonly Row[]> {
  const all: Row[] = [];
  let position: Position | null = null;
  do {
    const { rows, next }: Page<Position> = await read(position);
    all.push(...rows);
    position = next;
  } while (position !== null);
  return all;
}
