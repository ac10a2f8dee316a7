// What a file's name tells: what it holds, in which format, and how it is packed.

import type { Fields } from '@headgate/catalogue/declaration.ts';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import {
  interaction,
  isRecordTypeName,
  type RecordTypeName,
  recordTypeNames,
  recordTypes,
} from '@headgate/catalogue/record-types.ts';
import { uploadOrder } from '@headgate/catalogue/references.ts';
import { nearName } from '../../near-name.ts';
import { type Compression, compressions } from './source.ts';

export const INTERACTIONS = 'user-interactions';

export type LoadType = RecordTypeName | typeof INTERACTIONS;

const formats = { csv: 'csv', ndjson: 'ndjson', jsonl: 'ndjson', json: 'json' } as const;

export type Format = (typeof formats)[keyof typeof formats];

/** In the order in which every reference is found. */
export const loadOrder: readonly LoadType[] = [...uploadOrder(recordTypes), INTERACTIONS];

export function fieldsOf(type: LoadType): Fields {
  return type === INTERACTIONS ? interaction : recordTypes[type].fields;
}

/** The type that a word names; `shop_tags` and `Shop-Tags` mean shop-tags. */
export function typeNamed(word: string): LoadType | null {
  const name = word.toLowerCase().replaceAll('_', '-');
  return name === INTERACTIONS || isRecordTypeName(name) ? name : null;
}

export function nearType(word: string): string | null {
  return nearName(word.toLowerCase().replaceAll('_', '-'), [...recordTypeNames, INTERACTIONS]);
}

/** What is said of a word that names no type. */
export function mustBeType(word: string): string {
  const near = nearType(word);
  const hint = near === null ? `there are ${loadOrder.join(', ')}` : `did you mean ${near}?`;
  return `must be a record type or ${INTERACTIONS}, not ${quote(word)}; ${hint}`;
}

export interface NamedFile {
  /** The name up to its first dot. */
  readonly stem: string;
  readonly format: Format;
  readonly compression: Compression | null;
}

export const knownEndings = `.${Object.keys(formats).join(', .')}, each also with .${compressions.join(', .')}`;

/** Null where the name does not end as a data file's does. */
export function readFileName(name: string): NamedFile | null {
  const [stem, ...endings] = name.split('.') as [string, ...string[]];
  const last = endings.pop()?.toLowerCase();
  const compression = compressions.find((known) => known === last) ?? null;
  const ending = compression === null ? last : endings.pop()?.toLowerCase();
  if (ending === undefined || !Object.hasOwn(formats, ending)) return null;
  return { stem, format: formats[ending as keyof typeof formats], compression };
}
