// The types of the records in a sample. They come from the catalogue, so the compiler checks that every field has a
// value or null.

import type { Shown } from '@headgate/catalogue/declaration.ts';
import type { interaction, RecordTypeName, ShownRecord } from '@headgate/catalogue/record-types.ts';
import type { INTERACTIONS, LoadType } from '../load/file-types.ts';
import { moment } from './plan.ts';
import type { Random } from './random.ts';

export type SampleRecords = { [T in RecordTypeName]: ShownRecord<T> } & {
  [INTERACTIONS]: Shown<typeof interaction>;
};

/** Receives a record of the sample. */
export type Put = <T extends LoadType>(type: T, record: SampleRecords[T]) => void;

/** Returns the fields that show when a record was created, changed or deleted. Most records were never changed. */
export function bookkeeping(
  random: Random,
  createdMs: number,
  untilMs: number,
  deletedMs: number | null = null,
): { readonly created: string; readonly updated: string; readonly is_deleted: boolean } {
  const changedMs = random.chance(0.7) ? createdMs : random.momentMs(createdMs, untilMs);
  return {
    created: moment(createdMs),
    updated: moment(deletedMs ?? changedMs),
    is_deleted: deletedMs !== null,
  };
}
