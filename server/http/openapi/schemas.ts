// The component schemas of the API description, from the catalogue and from what the answers hold.

import type { Field, Fields, Reference } from '@headgate/catalogue/declaration.ts';
import { shownDateTimeSchema } from '@headgate/catalogue/kinds/date-time.ts';
import type { JsonSchema, KindName } from '@headgate/catalogue/kinds/kind.ts';
import { type ProblemCodeFacts, problemCodes } from '@headgate/catalogue/problem-codes.ts';
import {
  interaction,
  type RecordTypeName,
  recordTypeNames,
  recordTypes,
  storedInteraction,
} from '@headgate/catalogue/record-types.ts';
import { referencedTypes, uploadOrder } from '@headgate/catalogue/references.ts';
import { refTo } from './document-shape.ts';
import { exampleIds } from './example-records.ts';
import { shownExample, shownInteractionExample } from './examples.ts';
import type { ApiLimits } from './limits.ts';

/** `ShopCategory` for shop-categories: what one record is called among the schemas. */
export function schemaNameOf(type: RecordTypeName): string {
  return recordTypes[type].title
    .split(' ')
    .map((word) => word[0]!.toUpperCase() + word.slice(1))
    .join('');
}

export function componentSchemas(limits: ApiLimits): Record<string, JsonSchema> {
  const ofTypes = uploadOrder(recordTypes).flatMap((type) => Object.entries(schemasOfType(type, limits)));
  return {
    ...Object.fromEntries(ofTypes),
    InteractionInput: sentSchema('Interaction', interaction, shownInteractionExample),
    Interaction: shownSchema('Interaction', storedInteraction, shownInteractionExample),
    InteractionList: {
      title: 'Interactions, a page of them',
      type: 'object',
      properties: {
        interactions: {
          type: 'array',
          items: refTo('schemas', 'Interaction'),
          description: 'Newest first; perhaps none before the end.',
        },
        next_cursor: nextCursor,
      },
      required: ['interactions', 'next_cursor'],
      additionalProperties: false,
    },
    RecordTypeName: {
      type: 'string',
      enum: recordTypeNames,
      description: 'A record type, as paths name it.',
    },
    ProblemCode: problemCodeSchema,
    UploadResult: uploadResult,
    UploadProblem: uploadProblem,
    UploadWarning: uploadWarning,
    Refusal: refusal,
    FieldProblem: fieldProblem,
    ProbeAnswer: {
      type: 'object',
      properties: {
        status: { type: 'string', enum: ['alive', 'ready'], description: '`alive` or `ready`.' },
      },
      required: ['status'],
      additionalProperties: false,
    },
  };
}

const nextCursor: JsonSchema = {
  type: ['string', 'null'],
  description:
    '`cursor` of the next page. Only null means the end: a page may have fewer entries than `limit`, or none, before it.',
};

function schemasOfType(type: RecordTypeName, { maxRecords }: ApiLimits): Record<string, JsonSchema> {
  const { title, fields } = recordTypes[type];
  const name = schemaNameOf(type);
  const example = shownExample(type);
  return {
    [`${name}Input`]: sentSchema(title, fields, example),
    [`${name}Upload`]: {
      title: `${title}: an upload`,
      type: 'object',
      properties: {
        records: {
          type: 'array',
          items: refTo('schemas', `${name}Input`),
          minItems: 1,
          maxItems: maxRecords,
          description: `The records, at most ${maxRecords}.`,
        },
      },
      required: ['records'],
      additionalProperties: false,
    },
    [name]: shownSchema(title, fields, example),
    [`${name}List`]: {
      title: `${title}: a page`,
      type: 'object',
      properties: {
        type: { type: 'string', const: type, description: 'The type, as in the path.' },
        records: {
          type: 'array',
          items: refTo('schemas', name),
          description: 'In the order of their ids; perhaps none before the end.',
        },
        next_cursor: nextCursor,
      },
      required: ['type', 'records', 'next_cursor'],
      additionalProperties: false,
    },
  };
}

type Values = Readonly<Record<string, unknown>>;

export function sentSchema(title: string, fields: Fields, example: Values): JsonSchema {
  const required = Object.entries(fields).filter(([, field]) => field.required);
  return objectSchema(`${title}, as it is sent`, fields, example, required, (field) => ({
    schema: field.kind.schema,
    isNullable: !field.required,
  }));
}

/** Every field is there: an omitted one as null, or as what the field is kept as then. */
export function shownSchema(title: string, fields: Fields, example: Values): JsonSchema {
  return objectSchema(title, fields, example, Object.entries(fields), ({ kind, nullable }) => ({
    schema: kind.name === 'date-time' ? shownDateTimeSchema : kind.schema,
    isNullable: nullable,
  }));
}

interface ValueSchema {
  readonly schema: JsonSchema;
  readonly isNullable: boolean;
}

function objectSchema(
  title: string,
  fields: Fields,
  example: Values,
  required: readonly (readonly [string, Field])[],
  schemaOf: (field: Field) => ValueSchema,
): JsonSchema {
  return {
    title,
    type: 'object',
    properties: Object.fromEntries(
      Object.entries(fields).map(([name, field]) => [
        name,
        fieldSchema(field, schemaOf(field), example[name]),
      ]),
    ),
    required: required.map(([name]) => name),
    additionalProperties: false,
  };
}

function fieldSchema(field: Field, { schema, isNullable }: ValueSchema, example: unknown): JsonSchema {
  const { omitted } = field;
  const description = describeField(field);
  // What may be left out may also be an empty text.
  const bounds = !isNullable && 'maxLength' in schema ? { minLength: 1 } : {};
  return {
    ...(isNullable ? orNull(schema) : schema),
    ...bounds,
    ...(omitted === null ? {} : { default: omitted }),
    ...(description === '' ? {} : { description }),
    ...(example === undefined ? {} : { examples: [example] }),
  };
}

export function orNull(schema: JsonSchema): JsonSchema {
  const { type, enum: values } = schema;
  if (typeof type !== 'string') return { anyOf: [schema, { type: 'null' }] };
  return {
    ...schema,
    type: [type, 'null'],
    ...(Array.isArray(values) ? { enum: [...values, null] } : {}),
  };
}

/** Whose name says already what they take. */
const plainKinds: readonly KindName[] = ['uuid', 'boolean'];

function describeField({ kind, note, references }: Field): string {
  const sentences = [
    note,
    plainKinds.includes(kind.name) ? '' : `Takes ${kind.accepts}`,
    references === undefined ? '' : `Must name an uploaded record of ${linksTo(references)}`,
  ];
  return sentences
    .filter((sentence) => sentence !== '')
    .map((sentence) => `${sentence[0]!.toUpperCase()}${sentence.slice(1)}.`)
    .join(' ');
}

function linksTo(reference: Reference): string {
  return referencedTypes(reference)
    .map((type) => `[${type}](#${type})`)
    .join(', ');
}

const codes: Readonly<Record<string, ProblemCodeFacts>> = problemCodes;

const problemCodeSchema: JsonSchema = {
  type: 'string',
  enum: Object.keys(codes),
  description: 'Why a record, or a field of it, was not accepted. The list is closed.',
  'x-enumDescriptions': Object.fromEntries(
    Object.entries(codes).map(([code, { meaning, remedy }]) => [code, `${meaning} ${remedy}`]),
  ),
};

const count = (description: string): JsonSchema => ({ type: 'integer', minimum: 0, description });

const requestId: JsonSchema = {
  type: 'string',
  format: 'uuid',
  description: 'The id of the request, also in `X-Request-Id`; quote it to the operator.',
  examples: [exampleIds.request],
};

const message: JsonSchema = {
  type: 'string',
  description: 'A sentence for people; its words may change, codes do not.',
};

const uploadProblem: JsonSchema = {
  title: 'A problem of a record',
  type: 'object',
  properties: {
    index: count("The record's position in the request's `records`, from 0."),
    id: {
      type: ['string', 'null'],
      format: 'uuid',
      description: "The record's own id, null where it could not be read.",
    },
    field: {
      type: ['string', 'null'],
      description: 'The field that is wrong, null where it is the whole record.',
    },
    code: refTo('schemas', 'ProblemCode'),
    message,
    retryable: { type: 'boolean', description: 'True where the very same record may be accepted later.' },
  },
  required: ['index', 'id', 'field', 'code', 'message', 'retryable'],
  additionalProperties: false,
};

const uploadWarning: JsonSchema = {
  title: 'A warning',
  type: 'object',
  properties: {
    code: { type: 'string', const: 'unknown_field', description: 'The only one so far.' },
    field: { type: ['string', 'null'], description: 'The field that was dropped, null for further ones.' },
    count: count('How often in the batch.'),
    message,
  },
  required: ['code', 'field', 'count', 'message'],
  additionalProperties: false,
};

const counts: JsonSchema = {
  type: 'object',
  description: 'What became of the records; `received` is the sum of the other four.',
  properties: {
    received: count('Records in the batch.'),
    created: count('New records.'),
    updated: count('Records that replaced a stored one.'),
    unchanged: count('Records that were there already, or are older than the stored one.'),
    rejected: count('Records that were not accepted; `errors` names each.'),
  },
  required: ['received', 'created', 'updated', 'unchanged', 'rejected'],
  additionalProperties: false,
};

const batchData: JsonSchema = {
  type: 'object',
  description: 'The result of the batch.',
  properties: {
    status: {
      type: 'string',
      enum: ['success', 'partial', 'error'],
      description: '`success` for 200, `partial` for 207, `error` for 400 and 500.',
    },
    type: refTo('schemas', 'RecordTypeName'),
    message: { type: 'string', description: 'A summary of the batch.' },
    request_id: requestId,
    batch_id: { type: 'string', format: 'uuid', description: 'The id of the batch.' },
    error: { type: ['string', 'null'], description: 'A summary of what went wrong, null where nothing did.' },
    counts,
    errors: {
      type: 'array',
      items: refTo('schemas', 'UploadProblem'),
      description:
        'The problems of the rejected records: at least one and at most 20 of each. Beyond 5000 further problems in an ' +
        'upload, each remaining record is listed with its first one.',
    },
    errors_omitted: count('How many problems `errors` leaves out. Only present if it leaves out any.'),
    warnings: {
      type: 'array',
      items: refTo('schemas', 'UploadWarning'),
      description: 'What lenient handling dropped.',
    },
  },
  required: ['status', 'type', 'message', 'request_id', 'batch_id', 'error', 'counts', 'errors', 'warnings'],
  additionalProperties: false,
};

const uploadResult: JsonSchema = {
  title: 'The result of an upload',
  type: 'object',
  properties: {
    request_id: requestId,
    type: refTo('schemas', 'RecordTypeName'),
    dry_run: { type: 'boolean', const: true, description: 'Only there, and true, for a dry run.' },
    batches: {
      type: 'array',
      minItems: 1,
      description: 'One result for each batch of the records, in their order.',
      items: {
        type: 'object',
        properties: {
          batch: { type: 'integer', minimum: 1, description: 'The number of the batch, from 1.' },
          status: {
            type: 'integer',
            enum: [200, 207, 400, 500],
            description:
              '200 all accepted, 207 some, 400 none, 500 not confirmed by the store: send it again.',
          },
          data: batchData,
        },
        required: ['batch', 'status', 'data'],
        additionalProperties: false,
      },
    },
  },
  required: ['request_id', 'type', 'batches'],
  additionalProperties: false,
};

const fieldProblem: JsonSchema = {
  title: 'A problem of an interaction',
  type: 'object',
  properties: {
    field: { type: ['string', 'null'], description: 'The field that is wrong, null where it is the whole.' },
    code: refTo('schemas', 'ProblemCode'),
    message,
  },
  required: ['field', 'code', 'message'],
  additionalProperties: false,
};

const refusal: JsonSchema = {
  title: 'A refused request',
  type: 'object',
  properties: {
    error: { type: 'string', description: 'The name of the status.' },
    message: { type: 'string', description: 'What is wrong, and what to do.' },
    request_id: requestId,
    details: {
      type: 'array',
      items: refTo('schemas', 'FieldProblem'),
      description: 'Every problem of an interaction; left out elsewhere.',
    },
  },
  required: ['error', 'message', 'request_id'],
  additionalProperties: false,
};
