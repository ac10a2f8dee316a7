// The schemas of what is read from the ledger.

import { shownDateTimeSchema } from '@headgate/catalogue/kinds/date-time.ts';
import type { JsonSchema } from '@headgate/catalogue/kinds/kind.ts';
import { usageGroups } from '../../ledger/usage.ts';
import { uploadStatuses } from '../../store/ledger.ts';
import { refTo } from './document-shape.ts';
import { count, listOf, MAY_BE_EMPTY, nextCursor, object, oneOf, text, textOrNull } from './schema-parts.ts';

const seq: JsonSchema = {
  type: 'integer',
  minimum: 1,
  description: 'The number of the entry in the ledger.',
};

const uploadProperties: Readonly<Record<string, JsonSchema>> = {
  seq,
  request_id: {
    type: 'string',
    format: 'uuid',
    description: 'The id of the request. If single interactions were stored together, that of the first.',
  },
  type: refTo('schemas', 'UploadType'),
  key_id: text('The id of the key that sent it.'),
  key_name: textOrNull('The name of the key, or null if it has none.'),
  received_at: { ...shownDateTimeSchema, description: 'When the request arrived.' },
  status: oneOf(
    uploadStatuses,
    '`success` if no record was rejected, `error` if all were, `partial` otherwise.',
  ),
  counts: object(
    {
      received: count('Records in the upload.'),
      created: count('New records.'),
      updated: count('Records that replaced a stored one.'),
      unchanged: count('Records that are equal to the stored one or older.'),
      rejected: count('Records that were not accepted.'),
    },
    { description: 'The results of the records; `received` is the sum of the other four.' },
  ),
  bytes: count('The size of the body as it was sent.'),
  ms: count('The milliseconds from the arrival of the request until it was stored.'),
};

const cause = object(
  {
    code: refTo('schemas', 'ProblemCode'),
    field: textOrNull(
      'The field that is wrong. Null if the problem is the whole record, or for further fields.',
    ),
    count: count('How many problems there were.'),
    examples: {
      type: 'array',
      description: 'Up to three of them.',
      items: object({
        index: count("The record's position in the request's `records`, from 0."),
        id: {
          type: ['string', 'null'],
          format: 'uuid',
          description: "The record's id, or null if it could not be read.",
        },
        message: text('What is wrong.'),
      }),
    },
  },
  { title: 'Why records were rejected' },
);

const change = object(
  {
    seq: { ...seq, description: 'The number of the entry with the last change of the record in this page.' },
    type: refTo('schemas', 'UploadType'),
    id: { type: 'string', format: 'uuid', description: 'The id of the record.' },
    record: {
      type: ['object', 'null'],
      description: 'The record as it is now. A deleted one has `is_deleted`. Null if it no longer exists.',
    },
  },
  { title: 'A change' },
);

const sums: Readonly<Record<string, JsonSchema>> = {
  uploads: count('Entries in the ledger: uploads, and groups of interactions that were stored together.'),
  received: count('Records received.'),
  created: count('Records created.'),
  updated: count('Records updated.'),
  unchanged: count('Records that were equal to the stored ones or older.'),
  rejected: count('Records rejected.'),
  bytes: count('Bytes of bodies, as they were sent.'),
  interactions: count('Interactions among the created records.'),
};

const day: JsonSchema = { type: 'string', format: 'date' };

export const ledgerSchemas: Readonly<Record<string, JsonSchema>> = {
  Upload: object(uploadProperties, { title: 'Upload in a list' }),
  UploadWithCauses: object(
    {
      ...uploadProperties,
      causes: listOf('UploadCause', 'Why records were rejected, the most frequent first.'),
    },
    { title: 'Upload' },
  ),
  UploadCause: cause,
  UploadList: object(
    { uploads: listOf('Upload', `Newest first. ${MAY_BE_EMPTY}`), next_cursor: nextCursor },
    { title: 'A page of uploads' },
  ),
  Change: change,
  ChangeList: object(
    {
      changes: listOf('Change', 'Ordered by `seq`. May be empty.'),
      next: text('The position after this page: `after` of the next request.'),
      latest: count('The number of the last entry in the ledger.'),
    },
    { title: 'A page of changes' },
  ),
  Usage: object(
    {
      from: { ...day, description: 'The first day, in UTC.' },
      to: { ...day, description: 'The last day, in UTC.' },
      by: oneOf(usageGroups, 'What the rows of `usage` stand for.'),
      usage: {
        type: 'array',
        description: 'One row for each day, type or key that has any usage.',
        items: object(
          {
            day: { ...day, description: 'If `by` is `day`.' },
            type: { ...refTo('schemas', 'UploadType'), description: 'If `by` is `type`.' },
            key_id: text('If `by` is `key`.'),
            key_name: textOrNull('If `by` is `key`: the name of the key, or null if it has none.'),
            ...sums,
          },
          { optional: ['day', 'type', 'key_id', 'key_name'] },
        ),
      },
      total: object(sums, { description: 'The sums of all rows.' }),
    },
    { title: 'Usage' },
  ),
};
