// Adds up what organisations have uploaded, from the ledger.

import { date } from '@headgate/catalogue/kinds/date.ts';
import { Flaw } from '@headgate/catalogue/kinds/kind.ts';
import { INTERACTIONS } from '@headgate/catalogue/record-types.ts';
import { Failure } from '../failure.ts';
import { type Usage, usageSums } from '../store/ledger.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
/** The most days that are added up at once, because all rows are in memory. */
export const LONGEST_USAGE_DAYS = 400;
const DEFAULT_USAGE_DAYS = 30;
export const usageGroups = ['day', 'type', 'key'] as const;
export type UsageGroup = (typeof usageGroups)[number];

/** The first and the last day, in UTC. */
export interface UsagePeriod {
  readonly from: string;
  readonly to: string;
}

/** Returns the period with these days. By default it ends today and has 30 days. */
export function usagePeriod(
  from: string | undefined,
  to: string | undefined,
  nowMs: number,
): UsagePeriod | Failure {
  for (const [name, text] of Object.entries({ from, to })) {
    const checked = text === undefined ? null : date.check(text, false);
    if (checked instanceof Flaw) return new Failure(`${name} ${checked.message}`);
  }
  const last = to ?? dayOf(nowMs);
  const first = from ?? dayOf(Date.parse(last) - (DEFAULT_USAGE_DAYS - 1) * DAY_MS);
  const days = (Date.parse(last) - Date.parse(first)) / DAY_MS + 1;
  if (days < 1) return new Failure(`from and to must be in order: ${first} is later than ${last}`);
  if (days > LONGEST_USAGE_DAYS) {
    return new Failure(`from and to must span at most ${LONGEST_USAGE_DAYS} days, not ${days}`);
  }
  return { from: first, to: last };
}

export const shownSums = [...usageSums, 'interactions'] as const;
export type UsageSums = Record<(typeof shownSums)[number], number>;

/** The sums of one day, type or key. */
export interface UsageRow extends UsageSums {
  readonly day?: string;
  readonly type?: string;
  readonly key_id?: string;
  readonly key_name?: string | null;
}

/** Adds usage up by day, type or key. `interactions` counts the interactions among the records that were stored. */
export function summedUsage(
  usage: readonly Usage[],
  by: UsageGroup,
  names: ReadonlyMap<string, string | null>,
): { readonly usage: readonly UsageRow[]; readonly total: UsageSums } {
  const groupOf: Record<UsageGroup, (one: Usage) => string> = {
    day: ({ day }) => day,
    type: ({ type }) => type,
    key: ({ keyId }) => keyId,
  };
  const shownGroup = (group: string): object =>
    by === 'key' ? { key_id: group, key_name: names.get(group) ?? null } : { [by]: group };
  const groups = [...Map.groupBy(usage, groupOf[by])].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    usage: groups.map(([group, members]) => ({ ...shownGroup(group), ...sumOf(members) })),
    total: sumOf(usage),
  };
}

function sumOf(usage: readonly Usage[]): UsageSums {
  const sums = Object.fromEntries(shownSums.map((name) => [name, 0])) as UsageSums;
  for (const one of usage) {
    for (const name of usageSums) sums[name] += one[name];
    if (one.type === INTERACTIONS) sums.interactions += one.created;
  }
  return sums;
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
