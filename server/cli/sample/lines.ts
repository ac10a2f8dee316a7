// Formats a record of a sample as one line of its file.

import { type CsvValue, csvLine } from '../csv-lines.ts';
import { fieldsOf, INTERACTIONS, type LoadType } from '../load/file-types.ts';

export const formats = ['csv', 'ndjson'] as const;
export type Format = (typeof formats)[number];

/** Interactions are always NDJSON. */
export function formatFor(type: LoadType, wanted: Format): Format {
  return type === INTERACTIONS ? 'ndjson' : wanted;
}

/** Returns the header of a file, or an empty string if the format has none. */
export function headerLine(type: LoadType, wanted: Format): string {
  return formatFor(type, wanted) === 'csv' ? csvLine(Object.keys(fieldsOf(type))) : '';
}

/** Returns a function that formats records. Fields without a value are empty in CSV and omitted from JSON. */
export function lineWriter(type: LoadType, wanted: Format): (record: object) => string {
  const names = Object.keys(fieldsOf(type));
  if (formatFor(type, wanted) === 'csv') {
    return (record) => csvLine(names.map((name) => (record as Record<string, CsvValue>)[name]!));
  }
  const withoutNull = (_: string, value: unknown): unknown => value ?? undefined;
  return (record) => `${JSON.stringify(record, withoutNull)}\n`;
}
