// `headgate orgs usage`: shows how much organisations have uploaded.

import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { Failure } from '../failure.ts';
import {
  shownSums,
  summedUsage,
  type UsageGroup,
  type UsagePeriod,
  type UsageRow,
  type UsageSums,
  usageGroups,
  usagePeriod,
} from '../ledger/usage.ts';
import type { Organisation } from '../store/organisations.ts';
import type { Store } from '../store/store.ts';
import type { Call } from './call.ts';
import { columns } from './columns.ts';
import { type ExitCode, exitCodes, misused, printJson } from './io.ts';
import { shown } from './load/display.ts';
import { namedOrganisation } from './orgs.ts';
import { withStore } from './with-store.ts';

interface OrganisationUsage {
  readonly organisation: Organisation;
  readonly usage: readonly UsageRow[];
  readonly total: UsageSums;
}

export async function showUsage(call: Call): Promise<ExitCode> {
  const { io, option, isOn } = call;
  const period = usagePeriod(option('from'), option('to'), io.nowMs());
  if (period instanceof Failure)
    return misused(io, `--${period.reason.replace('from and to', 'from and --to')}`);
  const word = option('by');
  const by = usageGroups.find((known) => known === word) ?? null;
  if (word !== undefined && by === null) {
    return misused(io, `--by must be one of ${usageGroups.join(', ')}, not ${quote(word)}`);
  }
  return withStore(call, async (store) => {
    const nameOrId = option('org');
    const named = nameOrId === undefined ? null : await namedOrganisation(io, store, nameOrId);
    if (typeof named === 'number') return named;
    const all: OrganisationUsage[] = [];
    for (const organisation of named === null ? await store.organisations() : [named]) {
      all.push(await usageOf(store, organisation, period, by));
    }
    if (isOn('json')) {
      return printJson(
        io,
        all.map(({ organisation: { orgId, name }, usage, total }) => ({
          org_id: orgId,
          name,
          ...period,
          ...(by === null ? {} : { by, usage }),
          total,
        })),
      );
    }
    io.out(`From ${period.from} to ${period.to}, in UTC:`);
    for (const line of columns(tableOf(all, by))) io.out(line);
    return exitCodes.done;
  });
}

async function usageOf(
  store: Store,
  organisation: Organisation,
  { from, to }: UsagePeriod,
  by: UsageGroup | null,
): Promise<OrganisationUsage> {
  const usage = await store.usage(organisation.organisation, from, to);
  const keys = await store.keysOf(organisation.organisation);
  const names = new Map(keys.map(({ keyId, name }) => [keyId, name]));
  return { organisation, ...summedUsage(usage, by ?? 'day', names) };
}

/** Returns one row for each organisation, or for each of its days, types or keys. The name is last: it may be long. */
function tableOf(all: readonly OrganisationUsage[], by: UsageGroup | null): string[][] {
  const figures = (sums: UsageSums): string[] => shownSums.map((name) => shown(sums[name]));
  const heading = shownSums.map((name) => name.toUpperCase());
  if (by === null) {
    const rows = all.map(({ organisation, total }) => [...figures(total), organisation.name]);
    return [[...heading, 'ORGANISATION'], ...rows];
  }
  const groupOf = ({ day, type, key_id, key_name }: UsageRow): string =>
    day ?? type ?? key_name ?? key_id ?? '';
  const rows = all.flatMap(({ organisation, usage }) =>
    usage.map((row) => [groupOf(row), ...figures(row), organisation.name]),
  );
  return [[by.toUpperCase(), ...heading, 'ORGANISATION'], ...rows];
}
