// Makes the component schemas of the API description, from the catalogue and the shape of the responses.

import type { Field, Fields } from '@headgate/catalogue/declaration.ts';
import { shownDateTimeSchema } from '@headgate/catalogue/kinds/date-time.ts';
import type { JsonSchema, KindName } from '@headgate/catalogue/kinds/kind.ts';
import { problemCodes } from '@headgate/catalogue/problem-codes.ts';
import {
  interaction,
  type RecordTypeName,
  recordTypes,
  storedInteraction,
  uploadTypeNames,
  uploadTypes,
} from '@headgate/catalogue/record-types.ts';
import { referencedTypes, uploadOrder } from '@headgate/catalogue/references.ts';
import { analyticsSchemas } from './analytics-operations.ts';
import type { ApiLimits } from './document.ts';
import { refTo } from './document-shape.ts';
import { EXAMPLE_SEQ, exampleIds, exampleUploads } from './example-records.ts';
import { shownExample, shownInteractionExample } from './examples.ts';
import { ledgerSchemas } from './ledger-schemas.ts';
import { count, listOf, MAY_BE_EMPTY, nextCursor, object, oneOf, text, textOrNull } from './schema-parts.ts';
import { segmentSchemas } from './segment-operations.ts';

/** Returns `ShopCategories` for shop-categories, and `ShopCategory` for "Shop category". */
export function pascalCase(words: string): string {
  return words.replace(/(?:^|[ -])(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns the name of the schema of one record. */
export function schemaNameOf(type: RecordTypeName): string {
  return pascalCase(recordTypes[type].title);
}

/** Returns a link to the type on the reference page. */
export function linkTo(type: string): string {
  return `[${type}](#${type})`;
}

export function componentSchemas(limits: ApiLimits): Record<string, JsonSchema> {
  const ofTypes = uploadOrder(recordTypes).flatMap((type) => Object.entries(schemasOfType(type, limits)));
  return {
    ...Object.fromEntries(ofTypes),
    InteractionInput: sentSchema('Interaction', interaction, shownInteractionExample),
    UploadedInteraction: sentSchema(
      'Interaction',
      uploadTypes.interactions.fields,
      exampleUploads.interactions,
    ),
    InteractionUpload: uploadSchema('Interaction', 'UploadedInteraction', limits),
    Interaction: shownSchema('Interaction', storedInteraction, shownInteractionExample),
    InteractionList: object(
      { interactions: listOf('Interaction', `Newest first. ${MAY_BE_EMPTY}`), next_cursor: nextCursor },
      { title: 'A page of interactions' },
    ),
    UploadType: oneOf(uploadTypeNames, 'A record type or `interactions`, as paths name it.'),
    ProblemCode: problemCodeSchema,
    UploadResult: uploadResult,
    UploadProblem: uploadProblem,
    UploadWarning: uploadWarning,
    ...ledgerSchemas,
    ...analyticsSchemas,
    ...segmentSchemas,
    Refusal: refusal,
    FieldProblem: fieldProblem,
    ProbeAnswer: object({ status: oneOf(['alive', 'ready'], '`alive` or `ready`.') }),
  };
}

function schemasOfType(type: RecordTypeName, limits: ApiLimits): Record<string, JsonSchema> {
  const { title, fields } = recordTypes[type];
  const name = schemaNameOf(type);
  const example = shownExample(type);
  return {
    [`${name}Input`]: sentSchema(title, fields, example),
    [`${name}Upload`]: uploadSchema(title, `${name}Input`, limits),
    [name]: shownSchema(title, fields, example),
    [`${name}List`]: object(
      {
        type: { type: 'string', const: type, description: 'The type, as in the path.' },
        records: listOf(name, `Ordered by id. ${MAY_BE_EMPTY}`),
        next_cursor: nextCursor,
      },
      { title: `${title}: a page` },
    ),
  };
}

function uploadSchema(title: string, recordSchema: string, { maxRecords }: ApiLimits): JsonSchema {
  const bounds = { minItems: 1, maxItems: maxRecords };
  return object(
    { records: listOf(recordSchema, `The records, at most ${maxRecords}.`, bounds) },
    { title: `${title}: an upload` },
  );
}

type Values = Readonly<Record<string, unknown>>;

export function sentSchema(title: string, fields: Fields, example: Values): JsonSchema {
  const optional = Object.keys(fields).filter((name) => !fields[name]!.required);
  const properties = Object.entries(fields).map(([name, field]) => [
    name,
    fieldSchema(field, field.kind.schema, !field.required, example[name]),
  ]);
  return object(Object.fromEntries(properties), { title: `${title}, as it is sent`, optional });
}

/**
 * Returns the schema of a record as responses show it. Every field is present. A field that the client omitted is null,
 * or has the value that is stored in that case.
 */
export function shownSchema(title: string, fields: Fields, example: Values): JsonSchema {
  const properties = Object.entries(fields).map(([name, field]) => {
    const schema = field.kind.name === 'date-time' ? shownDateTimeSchema : field.kind.schema;
    return [name, fieldSchema(field, schema, field.nullable, example[name])];
  });
  return object(Object.fromEntries(properties), { title });
}

function fieldSchema(field: Field, schema: JsonSchema, isNullable: boolean, example: unknown): JsonSchema {
  // A text that must not be null must not be empty either. A text that may be null may also be empty.
  const bounds = !isNullable && 'maxLength' in schema ? { minLength: 1 } : {};
  return {
    ...(isNullable ? orNull(schema) : schema),
    ...bounds,
    default: field.omitted ?? undefined,
    description: describeField(field) || undefined,
    examples: example === undefined ? undefined : [example],
  };
}

function orNull(schema: JsonSchema): JsonSchema {
  const { type, enum: values } = schema;
  if (typeof type !== 'string') return { anyOf: [schema, { type: 'null' }] };
  const choices = Array.isArray(values) ? { enum: [...values, null] } : {};
  return { ...schema, type: [type, 'null'], ...choices };
}

/** The kinds whose name already says what they accept, so that descriptions need not say it. */
const plainKinds: readonly KindName[] = ['uuid', 'boolean'];

function describeField({ kind, note, references }: Field): string {
  const sentences = [
    note,
    plainKinds.includes(kind.name) ? '' : `Takes ${kind.accepts}`,
    references === undefined
      ? ''
      : `Must be the id of an uploaded record of ${referencedTypes(references).map(linkTo).join(', ')}`,
  ];
  return sentences
    .filter((sentence) => sentence !== '')
    .map((sentence) => `${sentence[0]!.toUpperCase()}${sentence.slice(1)}.`)
    .join(' ');
}

const problemCodeSchema: JsonSchema = {
  type: 'string',
  enum: Object.keys(problemCodes),
  description: 'Why a record or one of its fields was not accepted.',
  'x-enumDescriptions': Object.fromEntries(
    Object.entries(problemCodes).map(([code, { meaning, remedy }]) => [code, `${meaning} ${remedy}`]),
  ),
};

const requestId: JsonSchema = {
  type: 'string',
  format: 'uuid',
  description: 'The id of the request, as in `X-Request-Id`. Give it to the operator if you have questions.',
  examples: [exampleIds.request],
};

const message = text('A sentence for people. Its wording may change; codes do not.');

const uploadProblem = object(
  {
    index: count("The record's position in the request's `records`, from 0."),
    id: {
      type: ['string', 'null'],
      format: 'uuid',
      description: "The record's id, or null if it could not be read.",
    },
    field: textOrNull('The field that is wrong, or null if the problem is the whole record.'),
    code: refTo('schemas', 'ProblemCode'),
    message,
    retryable: { type: 'boolean', description: 'True if the same record may be accepted later.' },
  },
  { title: 'A problem of a record' },
);

const uploadWarning = object(
  {
    code: { type: 'string', const: 'unknown_field', description: 'The only code so far.' },
    field: textOrNull('The field that was dropped, or null for all further fields together.'),
    count: count('How often the field occurred in the batch.'),
    message,
  },
  { title: 'A warning' },
);

const counts = object(
  {
    received: count('Records in the batch.'),
    created: count('New records.'),
    updated: count('Records that replaced a stored one.'),
    unchanged: count('Records that are equal to the stored one or older.'),
    rejected: count('Records that were not accepted; `errors` lists each.'),
  },
  { description: 'The results of the records; `received` is the sum of the other four.' },
);

const batchData = object(
  {
    status: oneOf(
      ['success', 'partial', 'error'],
      '`success` for 200, `partial` for 207, `error` for 400 and 500.',
    ),
    type: refTo('schemas', 'UploadType'),
    message: text('A summary of the batch.'),
    request_id: requestId,
    batch_id: { type: 'string', format: 'uuid', description: 'The id of the batch.' },
    error: textOrNull('A summary of the problems, or null if there are none.'),
    counts,
    errors: listOf(
      'UploadProblem',
      'The problems of the rejected records: at least one and at most 20 for each. After 5000 further problems in an ' +
        'upload, only the first problem of each remaining record is listed.',
    ),
    errors_omitted: count('How many problems `errors` leaves out. Only present if it leaves out any.'),
    warnings: listOf('UploadWarning', 'The fields that lenient handling dropped.'),
  },
  { description: 'The result of the batch.', optional: ['errors_omitted'] },
);

const batch = object({
  batch: { type: 'integer', minimum: 1, description: 'The number of the batch, from 1.' },
  status: {
    type: 'integer',
    enum: [200, 207, 400, 500],
    description: '200 all accepted, 207 some, 400 none, 500 not confirmed by the store: send it again.',
  },
  data: batchData,
});

const SEQ_DESCRIPTION =
  "The number of the upload's entry in the ledger: the upload is in `GET /v1/changes` up to this position. Absent in a " +
  'dry run, and if the store failed.';

const uploadResult = object(
  {
    request_id: requestId,
    seq: { type: 'integer', minimum: 1, description: SEQ_DESCRIPTION, examples: [EXAMPLE_SEQ] },
    type: refTo('schemas', 'UploadType'),
    dry_run: { type: 'boolean', const: true, description: 'True for a dry run, otherwise absent.' },
    batches: {
      type: 'array',
      minItems: 1,
      description: 'One result for each batch, in order.',
      items: batch,
    },
  },
  { title: 'The result of an upload', optional: ['seq', 'dry_run'] },
);

const fieldProblem = object(
  {
    field: textOrNull('The field that is wrong, or null if the problem is the whole interaction.'),
    code: refTo('schemas', 'ProblemCode'),
    message,
  },
  { title: 'A problem of an interaction' },
);

const refusal = object(
  {
    error: text('The name of the status.'),
    message: text('What is wrong, and what to do.'),
    request_id: requestId,
    details: listOf('FieldProblem', 'The problems of an interaction. Absent in other refusals.'),
    latest: count('The number of the last entry in the ledger. Only in 410.'),
    position: count('The number of characters before the error in the text of an SQL query.'),
    path: text('The path of the node that is not valid in a condition, such as `all[1].customer`.'),
  },
  { title: 'A refused request', optional: ['details', 'latest', 'position', 'path'] },
);
