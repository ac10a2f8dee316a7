// Derives the type, format and compression of a file from its name.

import type { Fields } from '@headgate/catalogue/declaration.ts';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import {
  isRecordTypeName,
  type RecordTypeName,
  recordTypeNames,
  recordTypes,
  INTERACTIONS as UPLOADED_INTERACTIONS,
  type UploadTypeName,
  uploadTypes,
} from '@headgate/catalogue/record-types.ts';
import { uploadOrder } from '@headgate/catalogue/references.ts';
import { Failure } from '../../failure.ts';
import { nearName } from '../../near-name.ts';
import { type Compression, compressions } from './source.ts';

export const INTERACTIONS = 'user-interactions';
/** The name of the file in which `export all` notes the position of the ledger. `load` ignores it. */
export const POSITION_FILE = 'position';

export type LoadType = RecordTypeName | typeof INTERACTIONS;

const formats = { csv: 'csv', ndjson: 'ndjson', jsonl: 'ndjson', json: 'json' } as const;

export type Format = (typeof formats)[keyof typeof formats];

/** All types in dependency order: each comes after the types that it refers to. */
export const loadOrder: readonly LoadType[] = [...uploadOrder(recordTypes), INTERACTIONS];

/** Returns the name of the type in the path of an upload. */
export function uploadTypeOf(type: LoadType): UploadTypeName {
  return type === INTERACTIONS ? UPLOADED_INTERACTIONS : type;
}

export function fieldsOf(type: LoadType): Fields {
  return uploadTypes[uploadTypeOf(type)].fields;
}

/**
 * Returns the type with this name, or null if there is none. Both `shop_tags` and `Shop-Tags` mean shop-tags, and
 * `interactions` means user-interactions.
 */
export function typeNamed(word: string): LoadType | null {
  const name = word.toLowerCase().replaceAll('_', '-');
  if (name === UPLOADED_INTERACTIONS) return INTERACTIONS;
  return name === INTERACTIONS || isRecordTypeName(name) ? name : null;
}

export function nearType(word: string): string | null {
  return nearName(word.toLowerCase().replaceAll('_', '-'), [...recordTypeNames, INTERACTIONS]);
}

/** Returns the end of an error message about a word that is not a type. */
export function mustBeType(word: string): string {
  const near = nearType(word);
  const hint = near === null ? `there are ${loadOrder.join(', ')}` : `did you mean ${near}?`;
  return `must be a record type or ${INTERACTIONS}, not ${quote(word)}; ${hint}`;
}

/** Returns the type that the option `--type` names, or undefined if it was not given. */
export function uploadTypeOption(word: string | undefined): UploadTypeName | undefined | Failure {
  if (word === undefined) return undefined;
  const type = typeNamed(word);
  return type === null ? new Failure(`--type ${mustBeType(word)}`) : uploadTypeOf(type);
}

export interface NamedFile {
  /** The name up to its first dot. */
  readonly stem: string;
  readonly format: Format;
  readonly compression: Compression | null;
}

export const knownEndings = `.${Object.keys(formats).join(', .')}, each also with .${compressions.join(', .')}`;

/** Returns whether the name is that of a Parquet file, which `export` writes and `load` does not read. */
export function isParquetName(name: string): boolean {
  return /\.parquet(?:\.(?:gz|zst|br))?$/i.test(name);
}

/** Returns the parts of a file's name, or null if the name does not have the extension of a data file. */
export function readFileName(name: string): NamedFile | null {
  const [stem, ...endings] = name.split('.') as [string, ...string[]];
  const last = endings.pop()?.toLowerCase();
  const compression = compressions.find((known) => known === last) ?? null;
  const ending = compression === null ? last : endings.pop()?.toLowerCase();
  if (ending === undefined || !Object.hasOwn(formats, ending)) return null;
  return { stem, format: formats[ending as keyof typeof formats], compression };
}
