// Resolves the references of checked objects, with one lookup per referenced type, and reports every reference to a
// record that does not exist.

import { type RecordTypeName, recordTypes } from '@headgate/catalogue/record-types.ts';
import type { OrganisationNumber } from '../store/rows.ts';
import { type Checked, type FieldPlan, report } from './check-fields.ts';
import type { KnownRecords } from './known-records.ts';

export async function resolveReferences(
  plan: FieldPlan,
  objects: readonly Checked[],
  organisation: OrganisationNumber,
  known: KnownRecords,
): Promise<void> {
  if (plan.references.length === 0) return;
  const missing = await findMissing(plan, objects, organisation, known);
  if (missing.size === 0) return;
  for (const object of objects) {
    for (const { field, column, targetOf } of plan.references) {
      const id = object.row[column];
      const target = targetOf(object.row);
      if (typeof id !== 'string' || target === undefined || !missing.get(target)?.has(id)) continue;
      report(object, field, 'unknown_reference', unknownReference(target, id));
    }
  }
}

/** Returns the message for a field that refers to a record which does not exist. */
export function unknownReference(target: RecordTypeName, id: string): string {
  const title = recordTypes[target].title.toLowerCase();
  return `names no ${title} of this organisation: ${id}; upload it to ${target} first`;
}

async function findMissing(
  plan: FieldPlan,
  objects: readonly Checked[],
  organisation: OrganisationNumber,
  known: KnownRecords,
): Promise<ReadonlyMap<RecordTypeName, ReadonlySet<string>>> {
  const wanted = new Map<RecordTypeName, Set<string>>();
  for (const { row } of objects) {
    for (const { column, targetOf } of plan.references) {
      const id = row[column];
      const target = targetOf(row);
      if (typeof id !== 'string' || target === undefined) continue;
      const ids = wanted.get(target);
      if (ids === undefined) wanted.set(target, new Set([id]));
      else ids.add(id);
    }
  }
  const missing = new Map<RecordTypeName, ReadonlySet<string>>();
  await Promise.all(
    [...wanted].map(async ([type, ids]) => {
      const absent = await known.missing(organisation, type, ids);
      if (absent.size > 0) missing.set(type, absent);
    }),
  );
  return missing;
}
