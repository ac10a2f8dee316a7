// Good records to build tests on: the least that a type requires, with everything they refer to.

import { randomUUID } from 'node:crypto';
import type { Field } from '@headgate/catalogue/declaration.ts';
import { type RecordTypeName, recordTypes } from '@headgate/catalogue/record-types.ts';
import { dependenciesOf } from '@headgate/catalogue/references.ts';
import type { Api } from './api.ts';

export type TestRecord = Record<string, unknown>;

/** Returns a good value of a field's kind. */
export function goodValue({ kind }: Field): unknown {
  switch (kind.name) {
    case 'uuid':
      return randomUUID();
    case 'date-time':
      return '2024-05-01T09:30:00Z';
    case 'date':
      return '2001-02-28';
    case 'region':
      return 'GB';
    case 'number':
      return 1.5;
    case 'boolean':
      return true;
    case 'text':
      return 'some text';
    case 'choice':
      return (kind as unknown as { values: readonly string[] }).values[0];
    case 'event-timestamp':
      return 1_700_000_000;
  }
}

/** Returns a record with its required fields only, and the `given` fields unchanged. */
export function leastRecord(type: RecordTypeName, given: TestRecord = {}): TestRecord {
  const fields: Record<string, Field> = recordTypes[type].fields;
  const required = Object.entries(fields).filter(([, field]) => field.required);
  return { ...Object.fromEntries(required.map(([name, field]) => [name, goodValue(field)])), ...given };
}

/** A record with every field. */
export function fullRecord(type: RecordTypeName, given: TestRecord = {}): TestRecord {
  const fields: Record<string, Field> = recordTypes[type].fields;
  return {
    ...Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, goodValue(field)])),
    ...given,
  };
}

export function idOf(type: RecordTypeName, record: TestRecord): string {
  return record[recordTypes[type].key] as string;
}

/**
 * Uploads one record of every type that the type refers to, directly or indirectly. Returns the references for a
 * record of the type: `{shop_id: …}`.
 */
export async function uploadReferenced(api: Api, type: RecordTypeName): Promise<Record<string, string>> {
  const fields: Record<string, Field> = recordTypes[type].fields;
  const references: Record<string, string> = {};
  for (const [name, { references: target }] of Object.entries(fields)) {
    if (typeof target !== 'string') continue;
    const record = leastRecord(
      target as RecordTypeName,
      dependenciesOf(recordTypes[target as RecordTypeName].fields).length === 0
        ? {}
        : await uploadReferenced(api, target as RecordTypeName),
    );
    const { status, text } = await api.upload(target, [record]);
    if (status !== 200) throw new Error(`uploading a ${target} record answered ${status}: ${text}`);
    references[name] = idOf(target as RecordTypeName, record);
  }
  return references;
}
