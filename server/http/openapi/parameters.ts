// What requests carry beside their bodies: headers and query parameters.

import { dateTime } from '@headgate/catalogue/kinds/date-time.ts';
import { uuid } from '@headgate/catalogue/kinds/uuid.ts';
import { type RecordTypeName, recordTypes, storedInteraction } from '@headgate/catalogue/record-types.ts';
import { DEFAULT_PAGE_RECORDS, LARGEST_PAGE_RECORDS, writeCursor } from '../query.ts';
import { contentEncodings } from '../read-body.ts';
import { filterFields } from '../reading.ts';
import { LONGEST_IDEMPOTENCY_KEY_CHARACTERS } from '../request-headers.ts';
import { type Parameter, type Reference, refTo } from './document-shape.ts';
import { exampleInteraction } from './example-records.ts';
import { shownExample, shownInteractionExample } from './examples.ts';

export const parameters = {
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    description:
      'Makes the request safe to repeat: for 24 hours the same key with the same path and body gets the first ' +
      'answer again. A dry run ignores it.',
    required: false,
    schema: {
      type: 'string',
      minLength: 1,
      maxLength: LONGEST_IDEMPOTENCY_KEY_CHARACTERS,
      pattern: '^[!-~]+$',
    },
    example: '3c1f0b9e-2a77-4d60-9c54-8e1d7b6a5f20',
  },
  Prefer: {
    name: 'Prefer',
    in: 'header',
    description: '`handling=lenient` drops fields that are not known instead of refusing what carries them.',
    required: false,
    schema: { type: 'string' },
    example: 'handling=lenient',
  },
  ContentEncoding: {
    name: 'Content-Encoding',
    in: 'header',
    description: 'How the body is compressed, where it is.',
    required: false,
    schema: { type: 'string', enum: contentEncodings },
    example: 'gzip',
  },
  DryRun: {
    name: 'dry_run',
    in: 'query',
    description: 'Checks everything, stores nothing, and answers what an upload would do.',
    required: false,
    schema: { type: 'boolean', default: false },
    example: true,
  },
  Limit: {
    name: 'limit',
    in: 'query',
    description: 'The most entries on a page; a page may have fewer, or none, before the end.',
    required: false,
    schema: {
      type: 'integer',
      minimum: 1,
      maximum: LARGEST_PAGE_RECORDS,
      default: DEFAULT_PAGE_RECORDS,
    },
    example: DEFAULT_PAGE_RECORDS,
  },
  IncludeDeleted: {
    name: 'include_deleted',
    in: 'query',
    description: 'Also lists records that are marked as deleted.',
    required: false,
    schema: { type: 'boolean', default: false },
    example: true,
  },
  IfNoneMatch: {
    name: 'If-None-Match',
    in: 'header',
    description: 'The `ETag` of the version that is there already.',
    required: false,
    schema: { type: 'string' },
  },
} as const satisfies Record<string, Parameter>;

export function parameterRefs(...names: (keyof typeof parameters)[]): readonly Reference[] {
  return names.map((name) => refTo('parameters', name));
}

function cursor(values: readonly string[]): Parameter {
  return {
    name: 'cursor',
    in: 'query',
    description: '`next_cursor` of the page before.',
    required: false,
    schema: { type: 'string' },
    example: writeCursor(values),
  };
}

export function recordCursor(type: RecordTypeName): Parameter {
  return cursor([idOfExample(type)]);
}

export function idOfExample(type: RecordTypeName): string {
  return (shownExample(type) as Readonly<Record<string, unknown>>)[recordTypes[type].key] as string;
}

export function idParameter(description: string, example: string): Parameter {
  return { name: 'id', in: 'path', description, required: true, schema: uuid.schema, example };
}

const dayAfterExample = '2026-11-03T00:00:00Z';

export const interactionQuery: readonly (Parameter | Reference)[] = [
  ...parameterRefs('Limit'),
  cursor([shownInteractionExample.occurred_at, shownInteractionExample.interaction_id]),
  moment(
    'from',
    'Only interactions that occurred at this moment or later.',
    shownInteractionExample.occurred_at,
  ),
  moment('to', 'Only interactions that occurred before this moment.', dayAfterExample),
  ...filterFields.map((name): Parameter => {
    const { kind } = storedInteraction[name];
    return {
      name,
      in: 'query',
      description: `Only interactions with this \`${name}\`.`,
      required: false,
      schema: kind.schema,
      example: exampleInteraction[name],
    };
  }),
];

function moment(name: string, description: string, example: string): Parameter {
  return { name, in: 'query', description, required: false, schema: dateTime.schema, example };
}
