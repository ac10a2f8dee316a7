// `headgate uploads …`: shows what was uploaded, and why records were rejected.

import { dateTime } from '@headgate/catalogue/kinds/date-time.ts';
import { Flaw, quote } from '@headgate/catalogue/kinds/kind.ts';
import {
  HeadgateError,
  type UploadCause,
  type UploadEntry,
  type UploadEntryWithCauses,
  type UploadFilters,
} from '@headgate/client/client.ts';
import { Failure } from '../failure.ts';
import { uploadStatuses } from '../store/ledger.ts';
import type { Call } from './call.ts';
import { columns } from './columns.ts';
import { connect, type Server, whyFailed } from './connect.ts';
import { type ExitCode, exitCodes, failed, misused, printJson } from './io.ts';
import { shown } from './load/display.ts';
import { uploadTypeOption } from './load/file-types.ts';
import { wholeNumber } from './options.ts';

const DEFAULT_LIMIT = 100;
const MOST_UPLOADS = 1_000_000;
const LARGEST_PAGE = 1000;

export async function listUploads(call: Call): Promise<ExitCode> {
  const { io, option, isOn } = call;
  const filters = readFilters(call);
  if (filters instanceof Failure) return misused(io, filters);
  const limit = wholeNumber('limit', option('limit'), 1, MOST_UPLOADS) ?? DEFAULT_LIMIT;
  if (limit instanceof Failure) return misused(io, limit);
  return withServer(call, 'uploads list', async ({ client }) => {
    const uploads: UploadEntry[] = [];
    let isMore = false;
    // One more than is shown, to find out whether there are more.
    for await (const upload of client.uploads({ ...filters, pageSize: Math.min(limit + 1, LARGEST_PAGE) })) {
      isMore = uploads.length === limit;
      if (isMore) break;
      uploads.push(upload);
    }
    if (isOn('json')) return printJson(io, uploads);
    if (uploads.length === 0) io.out('There are no such uploads.');
    else for (const line of columns(tableOf(uploads))) io.out(line);
    if (isMore) io.err(`only the newest ${shown(limit)} are shown; to see more, give a larger --limit`);
    return exitCodes.done;
  });
}

export async function showUpload(call: Call): Promise<ExitCode> {
  const { io, args, isOn } = call;
  const id = args[0]!;
  return withServer(call, 'uploads show', async ({ client }) => {
    const upload = await client.getUpload(id);
    if (upload === null) return failed(io, `there is no upload with the request id or number ${quote(id)}`);
    if (isOn('json')) return printJson(io, upload);
    for (const line of linesOf(upload)) io.out(line);
    return exitCodes.done;
  });
}

async function withServer(
  call: Call,
  command: string,
  use: (server: Server) => Promise<ExitCode>,
): Promise<ExitCode> {
  const server = await connect(call, command);
  if (server instanceof Failure) return misused(call.io, server);
  const reason = await server.whyNotServing();
  if (reason !== null) return failed(call.io, reason);
  try {
    return await use(server);
  } catch (error) {
    if (error instanceof HeadgateError) return failed(call.io, whyFailed(error, server.url));
    throw error;
  }
}

function readFilters({ option }: Call): UploadFilters | Failure {
  const type = uploadTypeOption(option('type'));
  if (type instanceof Failure) return type;
  const word = option('status');
  const status = uploadStatuses.find((known) => known === word);
  if (word !== undefined && status === undefined) {
    return new Failure(`--status must be one of ${uploadStatuses.join(', ')}, not ${quote(word)}`);
  }
  const from = momentOption('from', option('from'));
  if (from instanceof Failure) return from;
  const to = momentOption('to', option('to'));
  if (to instanceof Failure) return to;
  return { type, status, key_id: option('key'), from, to };
}

/** Returns a moment. A date alone means its beginning in UTC. */
function momentOption(name: string, text: string | undefined): string | undefined | Failure {
  if (text === undefined) return undefined;
  const moment = /^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text;
  const checked = dateTime.check(moment, false);
  return checked instanceof Flaw ? new Failure(`--${name} ${checked.message}`) : moment;
}

function tableOf(uploads: readonly UploadEntry[]): string[][] {
  return [
    ['ENTRY', 'RECEIVED', 'TYPE', 'STATUS', 'RECORDS', 'REJECTED', 'REQUEST ID', 'KEY'],
    ...uploads.map(({ seq, received_at, type, status, counts, request_id, key_id, key_name }) => [
      String(seq),
      toTheSecond(received_at),
      type,
      status,
      String(counts.received),
      String(counts.rejected),
      request_id,
      key_name ?? key_id,
    ]),
  ];
}

function linesOf({ counts, causes, ...upload }: UploadEntryWithCauses): readonly string[] {
  const { received, created, updated, unchanged, rejected } = counts;
  const { key_id, key_name } = upload;
  const facts = columns([
    ['Request id', upload.request_id],
    ['Entry', String(upload.seq)],
    ['Type', upload.type],
    ['Received', toTheSecond(upload.received_at)],
    ['Key', key_name === null ? key_id : `${key_name} (${key_id})`],
    ['Size', `${shown(upload.bytes)} bytes, stored after ${shown(upload.ms)} ms`],
    ['Status', upload.status],
    ['Records', `${shown(received)} received`],
    ['', `${shown(created)} created`],
    ['', `${shown(updated)} updated`],
    ['', `${shown(unchanged)} unchanged`],
    ['', `${shown(rejected)} rejected`],
  ]);
  if (causes.length === 0) return facts;
  return [...facts, '', 'Why records were rejected:', ...columns(causeTable(causes), '  ')];
}

function causeTable(causes: readonly UploadCause[]): string[][] {
  return [
    ['COUNT', 'CODE', 'FIELD', 'EXAMPLES'],
    ...causes.flatMap(({ code, field, count, examples }) =>
      examples.map(({ index, id, message }, at) => [
        ...(at === 0 ? [shown(count), code, field ?? ''] : ['', '', '']),
        `record ${index}${id === null ? '' : `, ${id}`}: ${message}`,
      ]),
    ),
  ];
}

function toTheSecond(moment: string): string {
  return moment.replace(/\.\d+Z$/, 'Z');
}
