// Converts a stored row into the object that a response contains.

import type { Fields } from './declaration.ts';
import type { ColumnValue } from './kinds/kind.ts';
import {
  INTERACTIONS,
  type RecordTypeName,
  recordTypeNames,
  recordTypes,
  type ShownInteraction,
  type ShownRecord,
  storedInteraction,
  type UploadTypeName,
} from './record-types.ts';

/** Returns an object with a row's values. The row's values are in the order of the declared fields. */
export type Presenter<Shown> = (row: readonly ColumnValue[]) => Shown;

export function presenterOf<Shown>(fields: Fields): Presenter<Shown> {
  const columns = Object.entries(fields).map(([name, { kind }]) => ({ name, kind }));
  return (row) => {
    const shown: Record<string, unknown> = {};
    for (let column = 0; column < columns.length; column++) {
      const { name, kind } = columns[column]!;
      const kept = row[column]!;
      shown[name] = kept === null ? null : kind.present(kept);
    }
    return shown as Shown;
  };
}

export const presentInteraction: Presenter<ShownInteraction> = presenterOf(storedInteraction);

export const presenters = {
  ...(Object.fromEntries(
    recordTypeNames.map((type) => [type, presenterOf<ShownRecord>(recordTypes[type].fields)]),
  ) as Record<RecordTypeName, Presenter<ShownRecord>>),
  [INTERACTIONS]: presentInteraction,
} satisfies Record<UploadTypeName, Presenter<unknown>>;
