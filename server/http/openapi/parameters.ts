// Describes the headers and query parameters of requests.

import { dateTime } from '@headgate/catalogue/kinds/date-time.ts';
import type { JsonSchema } from '@headgate/catalogue/kinds/kind.ts';
import { uuid } from '@headgate/catalogue/kinds/uuid.ts';
import { type RecordTypeName, storedInteraction } from '@headgate/catalogue/record-types.ts';
import { contentEncodings } from '../body/read-body.ts';
import { LONGEST_IDEMPOTENCY_KEY_CHARACTERS } from '../header-values.ts';
import { DEFAULT_PAGE_RECORDS, LARGEST_PAGE_RECORDS, writeCursor } from '../query.ts';
import { filterFields } from '../read-handlers.ts';
import { type Parameter, type Reference, refTo } from './document-shape.ts';
import { exampleInteraction } from './example-records.ts';
import { idOfExample, shownInteractionExample } from './examples.ts';

function optional(
  place: 'query' | 'header',
  name: string,
  description: string,
  schema: JsonSchema,
  example?: unknown,
): Parameter {
  const shown = example === undefined ? {} : { example };
  return { name, in: place, description, required: false, schema, ...shown };
}

const toggle = { type: 'boolean', default: false };

export const parameters = {
  IdempotencyKey: optional(
    'header',
    'Idempotency-Key',
    'Makes the request safe to repeat: for 24 hours, requests with the same key, path and body get the first ' +
      'response again. A dry run ignores it.',
    { type: 'string', minLength: 1, maxLength: LONGEST_IDEMPOTENCY_KEY_CHARACTERS, pattern: '^[!-~]+$' },
    '3c1f0b9e-2a77-4d60-9c54-8e1d7b6a5f20',
  ),
  Prefer: optional(
    'header',
    'Prefer',
    '`handling=lenient` drops unknown fields, instead of rejecting the record or interaction that has them.',
    { type: 'string' },
    'handling=lenient',
  ),
  ContentEncoding: optional(
    'header',
    'Content-Encoding',
    'The compression of the body, if it is compressed.',
    { type: 'string', enum: contentEncodings },
    'gzip',
  ),
  DryRun: optional(
    'query',
    'dry_run',
    'Checks everything, stores nothing, and returns the response that an upload would get.',
    toggle,
    true,
  ),
  Limit: optional(
    'query',
    'limit',
    'The most entries on a page. A page before the end may have fewer, or none.',
    { type: 'integer', minimum: 1, maximum: LARGEST_PAGE_RECORDS, default: DEFAULT_PAGE_RECORDS },
    DEFAULT_PAGE_RECORDS,
  ),
  IncludeDeleted: optional(
    'query',
    'include_deleted',
    'Also lists records that are marked as deleted.',
    toggle,
    true,
  ),
  IfNoneMatch: optional('header', 'If-None-Match', 'The `ETag` of the version that the client has.', {
    type: 'string',
  }),
};

export function parameterRefs(...names: (keyof typeof parameters)[]): readonly Reference[] {
  return names.map((name) => refTo('parameters', name));
}

function cursor(values: readonly string[]): Parameter {
  const description = '`next_cursor` of the previous page.';
  return optional('query', 'cursor', description, { type: 'string' }, writeCursor(values));
}

export function recordCursor(type: RecordTypeName): Parameter {
  return cursor([idOfExample(type)]);
}

export function idParameter(description: string, example: string): Parameter {
  return { name: 'id', in: 'path', description, required: true, schema: uuid.schema, example };
}

const dayAfterExample = '2026-11-03T00:00:00Z';

export const interactionQuery: readonly (Parameter | Reference)[] = [
  ...parameterRefs('Limit'),
  cursor([shownInteractionExample.occurred_at, shownInteractionExample.interaction_id]),
  optional(
    'query',
    'from',
    'Only interactions that occurred at this moment or later.',
    dateTime.schema,
    shownInteractionExample.occurred_at,
  ),
  optional(
    'query',
    'to',
    'Only interactions that occurred before this moment.',
    dateTime.schema,
    dayAfterExample,
  ),
  ...filterFields.map((name) =>
    optional(
      'query',
      name,
      `Only interactions with this \`${name}\`.`,
      storedInteraction[name].kind.schema,
      exampleInteraction[name],
    ),
  ),
];
