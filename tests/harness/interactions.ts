// Interactions for tests, as in the contract: their fields, and the items that they may be about.

import type { Api } from './api.ts';
import type { TestRecord } from './records.ts';
import { specKey, specRecord, uploadParents } from './spec.ts';

export const itemKinds: Readonly<Record<string, string>> = {
  TAG: 'tags',
  OFFER: 'offers',
  SHOP: 'shops',
  KEYWORD: 'keywords',
};

export interface Items {
  /** By item type, the id of an item that exists. */
  readonly item: Readonly<Record<string, string>>;
  readonly student: string;
}

/** Uploads an item of every kind, and a student. */
export async function uploadItems(api: Api): Promise<Items> {
  const parents = await uploadParents(api);
  const offer = specRecord('offers', parents);
  const { status, text } = await api.upload('offers', [offer]);
  if (status !== 200) throw new Error(`uploading an offer answered ${status}: ${text}`);
  const ids: Record<string, unknown> = { ...parents, offers: offer[specKey('offers')] };
  const item = Object.entries(itemKinds).map(([kind, type]) => [kind, ids[type] as string] as const);
  return { item: Object.fromEntries(item), student: parents.customers! };
}

/** An interaction with the required fields alone. */
export function leastInteraction({ item }: Items, given: TestRecord = {}): TestRecord {
  return {
    interaction_type: 'PAGE_VIEW',
    item_type: 'SHOP',
    item_id: item.SHOP,
    event_timestamp: 1_714_555_800,
    ...given,
  };
}

export function fullInteraction(items: Items, given: TestRecord = {}): TestRecord {
  return leastInteraction(items, {
    user_id: 'user-7',
    student_id: items.student,
    city: 'Athens',
    country: 'Greece',
    platform: 'IOS',
    source: 'SERVICE',
    recommendation_id: '018f3b1c-9a77-7c3e-bd6f-0f3a5d2f9c11',
    ...given,
  });
}
