// TypeScript written out from the declarations, for the client: it is published without the catalogue, and an
// editor shows a named interface better than a type that is worked out.

import type { Field, Fields } from './declaration.ts';
import type { ChoiceKind } from './kinds/choice.ts';
import type { Kind } from './kinds/kind.ts';
import { problemCodes } from './problem-codes.ts';
import { interaction, type RecordTypeName, recordTypes, storedInteraction } from './record-types.ts';
import { referencedTypes, uploadOrder } from './references.ts';

/** The module with every type of record and interaction, as sent and as shown. */
export function clientTypes(): string {
  const order: readonly RecordTypeName[] = uploadOrder(recordTypes);
  return [
    '// What is uploaded and what is read back. Written by `npm run docs` from the catalogue.\n',
    ...order.flatMap((type) => {
      const { title, fields } = recordTypes[type];
      return [
        declaration(`A record of \`${type}\` as it is uploaded.`, sentName(title), sentFields(fields)),
        declaration(`A record of \`${type}\` as it is read back.`, shownName(title), shownFields(fields)),
      ];
    }),
    declaration('An interaction as it is recorded.', 'SentInteraction', sentFields(interaction)),
    declaration('An interaction as it is read back.', 'ShownInteraction', shownFields(storedInteraction)),
    declaration(
      'By record type, a record as it is uploaded.',
      'SentRecords',
      order.map((type) => `  ${propertyName(type)}: ${sentName(recordTypes[type].title)};\n`),
    ),
    declaration(
      'By record type, a record as it is read back.',
      'ShownRecords',
      order.map((type) => `  ${propertyName(type)}: ${shownName(recordTypes[type].title)};\n`),
    ),
    'export type RecordTypeName = keyof SentRecords;\n',
    'export type SentRecord<T extends RecordTypeName = RecordTypeName> = SentRecords[T];\n',
    'export type ShownRecord<T extends RecordTypeName = RecordTypeName> = ShownRecords[T];\n',
    '/** Why a record, or a field of it, is not accepted. */\n' +
      `export type ProblemCode =\n${Object.keys(problemCodes)
        .map((code) => `  | '${code}'`)
        .join('\n')};\n`,
    '/** All record types, each after those that its records refer to. */\n' +
      `export const uploadOrder = [\n${order.map((type) => `  '${type}',\n`).join('')}] as const;\n`,
    '/** By record type, the field that identifies a record. */\n' +
      `export const keyFields = {\n${order
        .map((type) => `  ${propertyName(type)}: '${recordTypes[type].key}',\n`)
        .join('')}} as const;\n`,
  ].join('\n');
}

function declaration(comment: string, name: string, lines: readonly string[]): string {
  return `/** ${comment} */\nexport interface ${name} {\n${lines.join('')}}\n`;
}

function sentFields(fields: Fields): readonly string[] {
  return Object.entries(fields).map(([name, field]) => {
    const type = wireType(field.kind);
    const member = field.required ? `${name}: ${type}` : `${name}?: ${type} | null`;
    return `  /** ${describe(field)} */\n  ${member};\n`;
  });
}

export function shownFields(fields: Fields): readonly string[] {
  return Object.entries(fields).map(([name, field]) => {
    const type = wireType(field.kind);
    const comment = field.note === '' ? '' : `  /** ${sentence(field.note)} */\n`;
    return `${comment}  ${name}: ${field.nullable ? `${type} | null` : type};\n`;
  });
}

function describe({ kind, note, references }: Field): string {
  const targets = references === undefined ? [] : referencedTypes(references);
  const reference = targets.length === 0 ? '' : `must be uploaded already: ${targets.join(', ')}`;
  return [note, kind.accepts, reference]
    .filter((part) => part !== '')
    .map(sentence)
    .join(' ');
}

function sentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}

function wireType(kind: Kind): string {
  switch (kind.name) {
    case 'uuid':
    case 'date-time':
    case 'date':
    case 'region':
    case 'text':
      return 'string';
    case 'number':
      return 'number';
    case 'boolean':
      return 'boolean';
    case 'choice':
      return (kind as unknown as ChoiceKind<string>).values.map((value) => `'${value}'`).join(' | ');
    case 'event-timestamp':
      return 'string | number';
  }
}

/** "Shop tag" becomes `ShopTag`. */
function pascalCase(title: string): string {
  return title.replace(/(?:^| )(\w)/g, (_, letter: string) => letter.toUpperCase());
}

const sentName = (title: string): string => `Sent${pascalCase(title)}`;
const shownName = (title: string): string => `Shown${pascalCase(title)}`;

function propertyName(type: string): string {
  return /^\w+$/.test(type) ? type : `'${type}'`;
}
