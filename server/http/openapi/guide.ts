// Writes the introduction of the API description in Markdown. The introduction covers everything that applies to all
// operations.

import { LONGEST_TEXT_CHARACTERS } from '@headgate/catalogue/kinds/text.ts';
import { problemCodes } from '@headgate/catalogue/problem-codes.ts';
import { recordTypes } from '@headgate/catalogue/record-types.ts';
import { dependenciesOf, uploadOrder } from '@headgate/catalogue/references.ts';
import type { Action } from '../../access/scopes.ts';
import { PAGE_BYTES } from '../../store/page-limits.ts';
import { contentEncodings } from '../body/read-body.ts';
import { MOST_PIPELINED_REQUESTS, MOST_UNANSWERED_REQUESTS } from '../connections/per-connection-limits.ts';
import { DEFAULT_PAGE_RECORDS, LARGEST_PAGE_RECORDS } from '../query.ts';
import { refusals } from '../refusals.ts';
import { listSlots, lookUpSlots, uploadSlots } from '../work-slots.ts';
import { curlOf } from './code-samples.ts';
import type { ApiLimits } from './document.ts';
import { exampleRecords } from './example-records.ts';
import { linkTo } from './schemas.ts';

const KIBIBYTE = 1024;

const scopes: Readonly<Record<Action, string>> = {
  'data:write': 'upload records',
  'data:read': 'read records back',
  'interactions:write': 'record interactions',
  'interactions:read': 'read interactions back',
  'analytics:read':
    'run SQL queries and reports on everything that the organisation has uploaded, and read segments',
  'analytics:write': 'save, evaluate and delete segments',
};

export function guide(limits: ApiLimits): string {
  return [
    introduction,
    firstRequest(),
    authentication(),
    uploading(limits),
    uploadOrderSection(),
    idempotency,
    pagination,
    limitsSection(limits),
    errors(),
  ].join('\n\n');
}

const introduction = `
Headgate ingests structured data for analytics and segmentation: fourteen types of records in batches, and single
user interactions. An acknowledged record is on disk. Every record that is not accepted is reported with the reason.
`.trim();

function firstRequest(): string {
  const { shop_id, name, region } = exampleRecords.shops;
  const upload = curlOf('/v1/data/shops', true, { records: [{ shop_id, name, region }] });
  return `
## First request

Paths are relative to the address of your server. The samples on this page read that address and your key from the
environment. A server that starts on an empty database prints a first key for testing. After that, the operator issues
keys.

Upload a shop, then send it again: the second time it is \`unchanged\`. An upload contains whole records, so it is safe
to repeat it.

\`\`\`sh Your server and your key
export HEADGATE_URL='http://127.0.0.1:8080'
export HEADGATE_KEY='hg_…'
\`\`\`

\`\`\`sh A first upload
${upload}
\`\`\`
`.trim();
}

function authentication(): string {
  return `
## Authentication

Every request needs an API key, except the probes and this description: \`Authorization: Bearer hg_…\`. A key belongs
to one organisation and has no access to the data of others. The operator issues, rotates and revokes keys with
\`headgate keys\`. All traffic must use HTTPS; a server without a certificate can only be reached from its own machine.

A key has all of these scopes unless it was issued with fewer:

${table(
  ['Scope', 'Lets a key'],
  Object.entries(scopes).map(([scope, may]) => [`\`${scope}\``, may]),
)}

\`data:write\` and \`data:read\` can be limited to one type: \`data:write:shops\`. A request with a missing or wrong key
gets a 401, one whose key lacks the scope a 403.
`.trim();
}

function uploading({ batchSize, maxRecords }: ApiLimits): string {
  return `
## Uploading

\`POST /v1/data/{type}\` accepts up to ${thousands(maxRecords)} records. They are split, in order, into batches of
${thousands(batchSize)}, and the response has one result for each batch. Valid records are stored even if others in the
same request are rejected. \`errors\` lists the problems of every rejected record by its index.

${table(
  ['Batch', 'What happened'],
  [
    ['200', 'every record was accepted'],
    ['207', 'some records were accepted, the others are in `errors`'],
    ['400', 'no record was accepted'],
    [
      '500',
      'the store did not confirm the request: all of it is stored, or nothing. Send it again as it is; that is safe, ' +
        'except for interactions that have neither an `interaction_id` nor an `Idempotency-Key`',
    ],
  ],
)}

The HTTP status is the status of the batches if all have the same, otherwise 207.

- An upload contains the whole record and replaces a stored record with the same id. If both have \`updated\`, an older
  record never replaces a newer one.
- Interactions are uploaded in the same way, to \`POST /v1/data/interactions\`. A stored interaction is never changed: an
  upload with the same \`interaction_id\` counts as \`unchanged\`.
- \`is_deleted\` marks a record as deleted. Lists leave it out, but it can still be read by its id and referred to.
- An optional field that is missing or null is stored as null, and \`is_deleted\` as false.
- Values are not converted: \`"1"\` is not a number. Ids are stored in lower case, regions in upper case, date-times in
  UTC.
- \`?dry_run=true\` checks everything, stores nothing, and returns the response that an upload would get.
- \`Prefer: handling=lenient\` drops fields that the type does not have and counts them in \`warnings\`, instead of
  rejecting the record.
- A body may be compressed: \`Content-Encoding: ${contentEncodings.join('`, `')}\`.
`.trim();
}

function uploadOrderSection(): string {
  const order = uploadOrder(recordTypes);
  const rows = order.flatMap((type) => {
    const needed = dependenciesOf(recordTypes[type].fields);
    return needed.length === 0 ? [] : [[linkTo(type), needed.map(linkTo).join(', ')]];
  });
  return `
## Upload order

A record that refers to another is accepted only if your organisation has already uploaded the other one. Upload in this
order, so that every reference is found: ${order.map(linkTo).join(', ')}; interactions last.

${table(['Type', 'Needs first'], [...rows, ['[interactions](#interactions)', 'the item, and the student if one is given']])}

A student is a customer: \`student_id\` is a \`customer_id\`.
`.trim();
}

const idempotency = `
## Idempotency and retries

Uploads of records can be repeated safely, and so can uploads of interactions that have an \`interaction_id\`. To record
other interactions only once even if they are sent several times, and to get the same response each time, give the
request an \`Idempotency-Key\` of 1 to 255 visible ASCII characters, such as a UUID.
For 24 hours, requests with the same key, path and body get the first response, with \`Idempotency-Replayed: true\`. The
same key with another body gets a 422. While the first request is still running, the response is 409.

Retry network errors, 408, 409, 429, 500 and 503, with a growing and random pause, and never sooner than \`Retry-After\`
says. After a 207, send only the corrected records again, and those whose problems are \`retryable\`.
`.trim();

const pagination = `
## Pagination

Lists return up to ${DEFAULT_PAGE_RECORDS} entries at a time; \`limit\` changes that to 1 to ${LARGEST_PAGE_RECORDS}.
To get the next page, send \`next_cursor\` as \`cursor\`, with the same other parameters. Only a
\`next_cursor\` of null means the end of the list. A page before the end may have fewer entries than \`limit\`, or none:
it also ends at about ${inUnits(PAGE_BYTES)}, or after many deleted records or filtered-out interactions were skipped.
Records are ordered by id, interactions newest first. Uploads in the meantime never make an entry appear twice.
`.trim();

function limitsSection({ maxRecords, maxBodyBytes, rateLimitPerSecond }: ApiLimits): string {
  return `
## Limits

${table(
  ['Limit', 'Value', 'Beyond it'],
  [
    ['Records in one upload', thousands(maxRecords), '[400](#status-400)'],
    ['Body, after decompression', inUnits(maxBodyBytes), '[413](#status-413)'],
    [
      'Requests of one key',
      rateLimitPerSecond === null
        ? 'not limited'
        : `${thousands(rateLimitPerSecond)} a second, counted separately by each process of the server`,
      '[429](#status-429)',
    ],
    ['Characters of a text', thousands(LONGEST_TEXT_CHARACTERS), '[`too_long`](#code-too_long)'],
    ['Problems reported for a record', '20', 'only counted'],
    ['Further problems of an upload', '5,000', 'only counted'],
    ['Uploads at once', String(uploadSlots.slots), 'they wait, then [503](#status-503)'],
    [
      'Single records and segments read at once',
      String(lookUpSlots.slots),
      'they wait, then [503](#status-503)',
    ],
    ['Pages of lists at once', String(listSlots.slots), 'they wait, then [503](#status-503)'],
    ['Unanswered requests on a connection', String(MOST_UNANSWERED_REQUESTS), 'the connection is closed'],
    ['Pipelined requests on all connections', String(MOST_PIPELINED_REQUESTS), 'the connection is closed'],
    ['A page of a list', `about ${inUnits(PAGE_BYTES)}`, 'the rest is on the next page'],
  ],
)}

Further problems are all problems of a record except its first. \`errors_omitted\` is the number of problems that are
only counted. The limits for requests at once apply to each organisation.

\`RateLimit\` is the number of requests that are left, and \`RateLimit-Policy\` the limit. A server that has too much in
memory responds with 503 and \`Retry-After\`.
`.trim();
}

function errors(): string {
  const codes = Object.entries(problemCodes).map(([code, { meaning, remedy, retryable }]) => [
    `\`${code}\``,
    meaning,
    remedy,
    retryable ? 'yes' : 'no',
  ]);
  return `
## Errors

There are two kinds of errors: a record is not accepted, or a whole request is refused.

### Problems of records

Each problem has one of these codes. \`retryable\` is true if the same record may be accepted later.

${table(['Code', 'What happened', 'What to do', 'Retryable'], codes)}

### Refused requests

The body is \`{error, message, request_id}\`. Nothing was stored, except possibly after a 500.

${table(
  ['Status', 'What happened', 'What to do'],
  Object.values(refusals).map(({ status, meaning, remedy }) => [String(status), meaning, remedy]),
)}
`.trim();
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function thousands(value: number): string {
  return value.toLocaleString('en-GB');
}

function inUnits(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB'];
  const unit = units.findLastIndex((_, power) => bytes % KIBIBYTE ** power === 0);
  return `${thousands(bytes / KIBIBYTE ** unit)} ${units[unit]}`;
}
