// A record of a sample as one line of its file.

import { type CsvValue, csvLine } from '../csv-lines.ts';
import { fieldsOf, type SampleRecords, type SampleType } from './records.ts';

export const formats = ['csv', 'ndjson'] as const;
export type Format = (typeof formats)[number];

/** Interactions are recorded one by one, as JSON, and so they are written. */
export function formatFor(type: SampleType, wanted: Format): Format {
  return type === 'user-interactions' ? 'ndjson' : wanted;
}

/** Empty where the format has no header. */
export function headerLine(type: SampleType, wanted: Format): string {
  return formatFor(type, wanted) === 'csv' ? csvLine(Object.keys(fieldsOf(type))) : '';
}

/** Fields without a value are empty in CSV and left out of JSON. */
export function lineWriter<T extends SampleType>(
  type: T,
  wanted: Format,
): (record: SampleRecords[T]) => string {
  const names = Object.keys(fieldsOf(type)) as (keyof SampleRecords[T] & string)[];
  const cellOf = (record: SampleRecords[T], column: number) => record[names[column]!] as CsvValue;
  if (formatFor(type, wanted) === 'csv') {
    const cells = new Array<CsvValue>(names.length);
    return (record) => {
      for (let column = 0; column < cells.length; column++) cells[column] = cellOf(record, column);
      return csvLine(cells);
    };
  }
  const labels = names.map((name) => `"${name}":`);
  return (record) => {
    let line = '';
    for (let column = 0; column < names.length; column++) {
      const value = cellOf(record, column);
      if (value === null) continue;
      line += `${line === '' ? '{' : ','}${labels[column]}${typeof value === 'string' ? JSON.stringify(value) : value}`;
    }
    return `${line}}\n`;
  };
}
