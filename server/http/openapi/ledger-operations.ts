// Describes the operations that read the ledger.

import { date } from '@headgate/catalogue/kinds/date.ts';
import { dateTime } from '@headgate/catalogue/kinds/date-time.ts';
import { uploadTypeNames } from '@headgate/catalogue/record-types.ts';
import type { Action } from '../../access/scopes.ts';
import { causesOf } from '../../ingest/rejections.ts';
import { LONGEST_USAGE_DAYS, summedUsage, usageGroups } from '../../ledger/usage.ts';
import { type LedgerEntry, uploadStatuses } from '../../store/ledger.ts';
import { notAcceptable } from '../header-values.ts';
import {
  allowedTypes,
  changesTypes,
  DEFAULT_PAGE_CHANGES,
  gone,
  LARGEST_PAGE_CHANGES,
  LONGEST_WAIT_S,
  noSuchUpload,
  readPosition,
  shownUpload,
} from '../ledger-handlers.ts';
import { apiRoutes } from '../routes.ts';
import type { Operation } from './document-shape.ts';
import { EXAMPLE_SEQ, exampleIds, exampleRecordedAt } from './example-records.ts';
import { flawedProblems, idOfExample, shownExample } from './examples.ts';
import {
  BAD_QUERY,
  badLimit,
  describe,
  found,
  type Own,
  refusalFrom,
  unknownParameter,
} from './operation.ts';
import { cursorParameter, idParameter, parameterRefs, query } from './parameters.ts';
import { inTypes, keyHeaders, refused } from './responses.ts';

export const LEDGER_TAG = 'ledger';

const KEY_ID = 'q7f2k9xw';
const typeParameter = query('type', 'Only this type.', { type: 'string', enum: uploadTypeNames }, 'shops');

/** Describes an operation for which a key needs one of several scopes. */
function ledgerOperation(scopes: readonly Action[], kind: 'read' | 'read or write', own: Own): Operation {
  const security = scopes.map((scope) => ({ apiKey: [scope] }));
  const forbidden = refused(refusalFrom(allowedTypes({ scopes: [] }, kind, undefined)));
  return describe('key', LEDGER_TAG, security, { ...own, responses: { ...own.responses, 403: forbidden } });
}

const readers: readonly Action[] = ['data:read', 'interactions:read'];
const readersAndWriters: readonly Action[] = [...readers, 'data:write', 'interactions:write'];
const seen =
  'A key sees the types for which it has a scope to read. Of the types that it may only write, it sees what it has sent itself.';

const problems = flawedProblems('shops');
const entry: LedgerEntry = {
  seq: EXAMPLE_SEQ,
  requestId: exampleIds.request,
  keyId: KEY_ID,
  type: 'shops',
  receivedAtMs: Date.parse(exampleRecordedAt),
  ms: 12,
  bytes: 412,
  received: 2,
  created: 1,
  updated: 0,
  unchanged: 0,
  rejected: 1,
  causesJson: null,
};
const keyNames = new Map([[KEY_ID, 'nightly import']]);
const uploadExample = shownUpload(entry, keyNames);

export function listUploads(): Operation {
  return ledgerOperation(readersAndWriters, 'read or write', {
    operationId: 'listUploads',
    summary: 'List uploads',
    description:
      'Returns what was uploaded, newest first: every upload whose records were checked, and every group of single ' +
      `interactions that were stored together. ${seen}`,
    parameters: [
      ...parameterRefs('Limit'),
      cursorParameter([String(EXAMPLE_SEQ)]),
      typeParameter,
      query('status', 'Only uploads with this status.', { type: 'string', enum: uploadStatuses }, 'partial'),
      query('key_id', 'Only uploads with this key.', { type: 'string' }, KEY_ID),
      query(
        'from',
        'Only uploads received at this moment or later.',
        dateTime.schema,
        '2026-11-02T00:00:00Z',
      ),
      query('to', 'Only uploads received before this moment.', dateTime.schema, '2026-11-03T00:00:00Z'),
    ],
    responses: {
      200: found('A page of uploads.', 'UploadList', 'page', 'The last page', {
        uploads: [uploadExample],
        next_cursor: null,
      }),
      400: badLimit,
    },
    path: `${apiRoutes.listUploads.path}?status=partial`,
    typescript:
      "for await (const upload of client.uploads({ status: 'partial' })) {\n  console.log(upload.received_at, upload.type, upload.counts);\n}",
    anchor: 'uploads',
  });
}

export function getUpload(): Operation {
  return ledgerOperation(readersAndWriters, 'read or write', {
    operationId: 'getUpload',
    summary: 'Get an upload',
    description: `Returns an upload, and why records were rejected. ${seen}`,
    parameters: [
      {
        ...idParameter('The `request_id` or the `seq` of the upload.', exampleIds.request),
        schema: { type: 'string' },
      },
    ],
    responses: {
      200: found('The upload.', 'UploadWithCauses', 'upload', 'Upload', {
        ...uploadExample,
        causes: causesOf(problems),
      }),
      400: unknownParameter,
      404: refused(noSuchUpload),
    },
    path: `/v1/uploads/${exampleIds.request}`,
    typescript: `const upload = await client.getUpload('${exampleIds.request}');\nconsole.log(upload?.causes);`,
    anchor: 'get',
  });
}

export function listChanges(): Operation {
  const change = {
    seq: EXAMPLE_SEQ,
    type: 'shops',
    id: idOfExample('shops'),
    record: shownExample('shops'),
  };
  return ledgerOperation(readers, 'read', {
    operationId: 'listChanges',
    summary: 'Follow changes',
    description:
      'Returns the current state of every record and interaction that has changed after a position, each once in a ' +
      'page. Pass `next` as `after` of the next request. With `Accept: application/x-ndjson`, each change is a line, ' +
      'and the last line has `next` and `latest`. A key sees the types that it may read.',
    parameters: [
      query(
        'after',
        'The position: 0 for the beginning, the `seq` of an upload, `latest`, or `next` of the previous page.',
        { type: 'string', pattern: '^[0-9]{1,15}(?::[0-9]{1,6})?$', default: '0' },
        String(EXAMPLE_SEQ - 1),
      ),
      typeParameter,
      query(
        'limit',
        'The most changes on a page. A page may have fewer.',
        { type: 'integer', minimum: 1, maximum: LARGEST_PAGE_CHANGES, default: DEFAULT_PAGE_CHANGES },
        DEFAULT_PAGE_CHANGES,
      ),
      query(
        'wait',
        'If there are no changes, how many seconds to wait for some.',
        { type: 'integer', minimum: 0, maximum: LONGEST_WAIT_S, default: 0 },
        LONGEST_WAIT_S,
      ),
    ],
    responses: {
      200: inTypes(
        changesTypes,
        found('A page of changes.', 'ChangeList', 'page', 'One change', {
          changes: [change],
          next: String(EXAMPLE_SEQ),
          latest: EXAMPLE_SEQ,
        }),
      ),
      400: refused(refusalFrom(readPosition('yesterday')), keyHeaders, 'bad_position', BAD_QUERY),
      406: refused(notAcceptable(changesTypes)),
      410: refused(gone(EXAMPLE_SEQ)),
    },
    path: `${apiRoutes.listChanges.path}?after=0`,
    typescript:
      `for await (const { changes, next } of client.changes({ after: '0', follow: false })) {\n` +
      '  for (const { type, id, record } of changes) console.log(type, id, record);\n' +
      "  console.log('continue after', next);\n}",
    anchor: 'changes',
  });
}

export function getUsage(): Operation {
  const day = exampleRecordedAt.slice(0, 10);
  const { keyId, type, received, created, updated, unchanged, rejected, bytes } = entry;
  const usage = { day, type, keyId, uploads: 1, received, created, updated, unchanged, rejected, bytes };
  return ledgerOperation(readersAndWriters, 'read or write', {
    operationId: 'getUsage',
    summary: 'Get the usage',
    description: `Adds up the ledger by day, type or key. ${seen}`,
    parameters: [
      query('from', `The first day, in UTC. By default 29 days before \`to\`.`, date.schema, day),
      query(
        'to',
        `The last day, in UTC. By default today. At most ${LONGEST_USAGE_DAYS} days in all.`,
        date.schema,
        day,
      ),
      query('by', 'What to add up by.', { type: 'string', enum: usageGroups, default: 'day' }, 'day'),
    ],
    responses: {
      200: found('The usage.', 'Usage', 'usage', 'One day', {
        from: day,
        to: day,
        by: 'day',
        ...summedUsage([usage], 'day', keyNames),
      }),
      400: refused(
        { refusal: 'bad_request', message: 'by must be one of day, type, key, not "week".' },
        keyHeaders,
        'bad_group',
        BAD_QUERY,
      ),
    },
    path: `${apiRoutes.getUsage.path}?from=${day}&to=${day}`,
    anchor: 'usage',
  });
}
