// Describes the headers and query parameters of requests.

import { dateTime } from '@headgate/catalogue/kinds/date-time.ts';
import type { JsonSchema } from '@headgate/catalogue/kinds/kind.ts';
import { uuid } from '@headgate/catalogue/kinds/uuid.ts';
import { storedInteraction } from '@headgate/catalogue/record-types.ts';
import { contentEncodings } from '../body/read-body.ts';
import { LONGEST_IDEMPOTENCY_KEY_CHARACTERS } from '../header-values.ts';
import { DEFAULT_PAGE_RECORDS, LARGEST_PAGE_RECORDS, writeCursor } from '../query.ts';
import { filterFields } from '../read-handlers.ts';
import { type Parameter, type Reference, refTo } from './document-shape.ts';
import { exampleInteraction } from './example-records.ts';
import { shownInteractionExample } from './examples.ts';

export function query(name: string, description: string, schema: JsonSchema, example: unknown): Parameter {
  return { name, in: 'query', description, required: false, schema, example };
}

function header(name: string, description: string, rules: JsonSchema = {}, example?: string): Parameter {
  return { name, in: 'header', description, required: false, schema: { type: 'string', ...rules }, example };
}

const toggle = { type: 'boolean', default: false };

export const parameters = {
  IdempotencyKey: header(
    'Idempotency-Key',
    'Makes the request safe to repeat: for 24 hours, requests with the same key, path and body get the first ' +
      'response again. A dry run ignores it.',
    { minLength: 1, maxLength: LONGEST_IDEMPOTENCY_KEY_CHARACTERS, pattern: '^[!-~]+$' },
    '3c1f0b9e-2a77-4d60-9c54-8e1d7b6a5f20',
  ),
  Prefer: header(
    'Prefer',
    '`handling=lenient` drops unknown fields, instead of rejecting the record or interaction that has them.',
    {},
    'handling=lenient',
  ),
  ContentEncoding: header(
    'Content-Encoding',
    'The compression of the body, if it is compressed.',
    { enum: contentEncodings },
    'gzip',
  ),
  DryRun: query(
    'dry_run',
    'Checks everything, stores nothing, and returns the response that an upload would get.',
    toggle,
    true,
  ),
  Limit: query(
    'limit',
    'The most entries on a page. A page before the end may have fewer, or none.',
    { type: 'integer', minimum: 1, maximum: LARGEST_PAGE_RECORDS, default: DEFAULT_PAGE_RECORDS },
    DEFAULT_PAGE_RECORDS,
  ),
  IncludeDeleted: query('include_deleted', 'Also lists records that are marked as deleted.', toggle, true),
  IfNoneMatch: header('If-None-Match', 'The `ETag` of the version that the client has.'),
};

export function parameterRefs(...names: (keyof typeof parameters)[]): readonly Reference[] {
  return names.map((name) => refTo('parameters', name));
}

/** The example is a cursor of these values. */
export function cursorParameter(values: readonly string[]): Parameter {
  const description = '`next_cursor` of the previous page.';
  return query('cursor', description, { type: 'string' }, writeCursor(values));
}

export function idParameter(description: string, example: string): Parameter {
  return { name: 'id', in: 'path', description, required: true, schema: uuid.schema, example };
}

export const interactionQuery: readonly (Parameter | Reference)[] = [
  ...parameterRefs('Limit'),
  cursorParameter([shownInteractionExample.occurred_at, shownInteractionExample.interaction_id]),
  query(
    'from',
    'Only interactions that occurred at this moment or later.',
    dateTime.schema,
    shownInteractionExample.occurred_at,
  ),
  query('to', 'Only interactions that occurred before this moment.', dateTime.schema, '2026-11-03T00:00:00Z'),
  ...filterFields.map((name) =>
    query(
      name,
      `Only interactions with this \`${name}\`.`,
      storedInteraction[name].kind.schema,
      exampleInteraction[name],
    ),
  ),
];
