// The records of a sample: every field of the catalogue is decided, be it that it is absent. One that is added there
// does not compile here until it is.

import type { Fields, Shown } from '@headgate/catalogue/declaration.ts';
import {
  interaction,
  type RecordTypeName,
  recordTypeNames,
  recordTypes,
  type ShownRecord,
} from '@headgate/catalogue/record-types.ts';
import { moment } from './plan.ts';
import type { Random } from './random.ts';

export type SampleRecords = { [T in RecordTypeName]: ShownRecord<T> } & {
  'user-interactions': Shown<typeof interaction>;
};

export type SampleType = keyof SampleRecords;

/** Takes a record of the sample. */
export type Put = <T extends SampleType>(type: T, record: SampleRecords[T]) => void;

export const sampleTypes: readonly SampleType[] = [...recordTypeNames, 'user-interactions'];

export function fieldsOf(type: SampleType): Fields {
  return type === 'user-interactions' ? interaction : recordTypes[type].fields;
}

interface Bookkeeping {
  readonly created: string;
  readonly updated: string;
  readonly is_deleted: boolean;
}

/** `deletedMs`: when it was deleted, null where it was not. */
export function bookkeeping(createdMs: number, updatedMs: number, deletedMs: number | null): Bookkeeping {
  return {
    created: moment(createdMs),
    updated: moment(deletedMs ?? updatedMs),
    is_deleted: deletedMs !== null,
  };
}

/** Most records stay as they were made; the others were changed at some time since. */
export function lastChangeMs(random: Random, createdMs: number, untilMs: number): number {
  return random.chance(0.7) ? createdMs : momentBetween(random, createdMs, untilMs);
}

/** A whole second from the first to the last, both included. */
export function momentBetween(random: Random, firstMs: number, lastMs: number): number {
  return firstMs + Math.floor(random.fraction() * (Math.floor((lastMs - firstMs) / 1000) + 1)) * 1000;
}
