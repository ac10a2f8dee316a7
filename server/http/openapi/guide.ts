// The introduction of the API description, in Markdown: what holds for every operation.

import { LONGEST_TEXT_CHARACTERS } from '@headgate/catalogue/kinds/text.ts';
import { type ProblemCodeDescription, problemCodes } from '@headgate/catalogue/problem-codes.ts';
import { recordTypes } from '@headgate/catalogue/record-types.ts';
import { dependenciesOf, uploadOrder } from '@headgate/catalogue/references.ts';
import type { Action } from '../../access/scopes.ts';
import { PAGE_BYTES } from '../../store/page-bounds.ts';
import { MOST_UNANSWERED_REQUESTS } from '../connection-limits.ts';
import { DEFAULT_PAGE_RECORDS, LARGEST_PAGE_RECORDS } from '../query.ts';
import { contentEncodings } from '../read-body.ts';
import { refusals } from '../refusals.ts';
import { listSlots, lookUpSlots, uploadSlots } from '../work-slots.ts';
import { curlOf } from './code-samples.ts';
import { exampleRecords } from './example-records.ts';
import type { ApiLimits } from './limits.ts';

const KIBIBYTE = 1024;

const scopes: Readonly<Record<Action, string>> = {
  'data:write': 'upload records',
  'data:read': 'read records back',
  'interactions:write': 'record interactions',
  'interactions:read': 'read interactions back',
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
Headgate takes in structured data for analytics and segmentation: fourteen types of records in batches, and single
user interactions. A record that is acknowledged is on disk, and every record that is not accepted is named with its
reason.
`.trim();

function firstRequest(): string {
  const { shop_id, name, region } = exampleRecords.shops;
  const upload = curlOf({
    path: '/v1/data/shops',
    needsKey: true,
    body: { records: [{ shop_id, name, region }] },
    typescript: null,
  });
  return `
## First request

Paths are relative to the address of your server. The samples on this page take that address, and your key, from the
environment. The first start of a server on an empty database prints a key to try things with; after that the operator
issues them.

Upload a shop, then send it again: the second time it is \`unchanged\`. An upload states whole records, so it can be
repeated without fear.

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

Every request carries an API key, except the probes and this description: \`Authorization: Bearer hg_…\`. A key
belongs to one organisation and sees nothing of any other. The operator issues, rotates and revokes keys with
\`headgate keys\`. All traffic must use HTTPS; a server without a certificate answers on its own machine only.

A key has all of these scopes unless it was issued with fewer:

${table(
  ['Scope', 'Lets a key'],
  Object.entries(scopes).map(([scope, may]) => [`\`${scope}\``, may]),
)}

\`data:write\` and \`data:read\` can be narrowed to one type: \`data:write:shops\`. A missing or wrong key is answered
401, a key without the scope 403.
`.trim();
}

function uploading({ batchSize, maxRecords }: ApiLimits): string {
  return `
## Uploading

\`POST /v1/data/{type}\` takes up to ${thousands(maxRecords)} records. They are cut, in order, into batches of
${thousands(batchSize)}; the answer has one result for each. Good records are stored even where others of the same
request are rejected, and \`errors\` names the problems of every rejected record by its index.

${table(
  ['Batch', 'What happened'],
  [
    ['200', 'every record was accepted'],
    ['207', 'some were accepted, the others are in `errors`'],
    ['400', 'none was accepted'],
    [
      '500',
      'the store did not confirm the request, all of which is stored, or nothing: send it again as it is; that is safe',
    ],
  ],
)}

The HTTP status is what all batches share, otherwise 207.

- An upload states the whole record: a stored one with the same id is replaced. Where both carry \`updated\`, an older
  one never replaces a newer.
- \`is_deleted\` marks a record as deleted. It is left out of lists, is still found by its id, and can still be referred
  to.
- An optional field that is left out, or null, is kept as null; \`is_deleted\` as false.
- Nothing is converted: \`"1"\` is no number. Ids are kept in lower case, regions in upper case, date-times in UTC.
- \`?dry_run=true\` checks everything, stores nothing, and answers as an upload would be answered.
- \`Prefer: handling=lenient\` drops fields that the type does not have, and counts them in \`warnings\`, instead of
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

A record that refers to another is accepted once that other has been uploaded by the same organisation. Upload in this
order and every reference is found: ${order.map(linkTo).join(', ')}; interactions last.

${table(['Type', 'Needs first'], [...rows, ['[interactions](#interactions)', 'the item, and the student where one is named']])}

A student is a customer: \`student_id\` is a \`customer_id\`.
`.trim();
}

const idempotency = `
## Idempotency and retries

Every upload can be repeated safely. To have an interaction recorded once however often it is sent, and to get the very
same answer again, give the request an \`Idempotency-Key\` of 1 to 255 visible ASCII characters, such as a UUID. For 24
hours the same key with the same path and body gets the first answer, with \`Idempotency-Replayed: true\`; with another
body it is refused with 422. While the first request is still running, the answer is 409.

Retry network errors, 408, 409, 429, 500 and 503, with a growing and random pause, never sooner than \`Retry-After\`
says. Of a 207 send only the mended records again, and those whose problems are \`retryable\`.
`.trim();

const pagination = `
## Pagination

Lists answer up to ${DEFAULT_PAGE_RECORDS} entries at a time; \`limit\` asks for 1 to ${LARGEST_PAGE_RECORDS}. Until the
end of the list, \`next_cursor\` is a text to send as \`cursor\` with the same other parameters. Only
a \`next_cursor\` of null means the end. A page also ends at about ${inUnits(PAGE_BYTES)}, or when many deleted records or interactions that
the filters leave out were passed over, so it may have fewer entries than \`limit\`, or none, before the end. Records come
in the order of their ids, interactions newest first. What is uploaded meanwhile never makes an entry appear twice.
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
        : `${thousands(rateLimitPerSecond)} a second, counted by each process of the server by itself`,
      '[429](#status-429)',
    ],
    ['Characters of a text', thousands(LONGEST_TEXT_CHARACTERS), '[`too_long`](#code-too_long)'],
    ['Problems reported of a record', '20', 'only counted'],
    ['Further problems of an upload', '5,000', 'only counted'],
    ['Uploads at once', String(uploadSlots.slots), 'they wait, then [503](#status-503)'],
    ['Single records read at once', String(lookUpSlots.slots), 'they wait, then [503](#status-503)'],
    ['Pages of lists at once', String(listSlots.slots), 'they wait, then [503](#status-503)'],
    ['Unanswered requests on a connection', String(MOST_UNANSWERED_REQUESTS), 'it is closed'],
    ['A page of a list', `about ${inUnits(PAGE_BYTES)}`, 'the rest is on the next page'],
  ],
)}

Further problems are those beside the first of each record; what is only counted is in \`errors_omitted\`. What
happens at once is counted by organisation.

\`RateLimit\` says how many requests are left, and \`RateLimit-Policy\` how many there are. A server that is given more
than it can hold at once answers 503 with \`Retry-After\`.
`.trim();
}

function errors(): string {
  const codes = Object.entries(problemCodes as Readonly<Record<string, ProblemCodeDescription>>);
  return `
## Errors

Two kinds of things go wrong: a record is not accepted, or a whole request is refused.

### Problems of records

Each problem has a \`code\`; the list is closed. \`retryable\` is true where the same record may be accepted later.

${table(
  ['Code', 'What happened', 'What to do', 'Retryable'],
  codes.map(([code, { meaning, remedy, retryable }]) => [
    `\`${code}\``,
    meaning,
    remedy,
    retryable ? 'yes' : 'no',
  ]),
)}

### Refused requests

The body is \`{error, message, request_id}\`. Nothing was stored, except perhaps with 500.

${table(
  ['Status', 'What happened', 'What to do'],
  Object.values(refusals).map(({ status, meaning, remedy }) => [String(status), meaning, remedy]),
)}
`.trim();
}

function linkTo(type: string): string {
  return `[${type}](#${type})`;
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
