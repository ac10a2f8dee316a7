// `headgate segments …`: tries, saves and shows segments, their members, and why a customer is one.

import { quote } from '@headgate/catalogue/kinds/kind.ts';
import {
  AbortedError,
  type Condition,
  type HeadgateClient,
  HeadgateError,
  type ReadOptions,
  RefusedError,
  type Segment,
  type SegmentMember,
} from '@headgate/client/client.ts';
import { Failure } from '../failure.ts';
import { nearName } from '../near-name.ts';
import type { Call } from './call.ts';
import { connect, type Server, whyFailed } from './connect.ts';
import { csvLine } from './csv-lines.ts';
import { readInput } from './input-file.ts';
import { type ExitCode, exitCodes, failed, type Io, misused, printJson } from './io.ts';
import { placeInJson } from './json-place.ts';
import { whyNotWritten, writeToOutput } from './output.ts';
import { placeInQuery } from './query-place.ts';
import { explanationText, listText, outcomeText, previewText, segmentText } from './segments-text.ts';
import { untilSignal } from './stop-signal.ts';

const USUAL_WIDTH_CHARACTERS = 100;
/** How many members are written at once. */
const MEMBERS_AT_ONCE = 1000;

/** A condition as it was read from a file. */
interface GivenCondition {
  readonly condition: Condition;
  readonly note: string | null;
  readonly text: string;
  /** The path of the condition in the file: empty, or `condition`. */
  readonly path: string;
}

export async function listSegments(call: Call): Promise<ExitCode> {
  const { io, isOn } = call;
  return withServer(call, 'list', async ({ client }, control) => {
    const segments = await client.segments(control);
    if (isOn('json')) return printJson(io, segments);
    if (segments.length === 0) io.out('There are no segments.');
    else printLines(io, listText(segments, io.nowMs()));
    return exitCodes.done;
  });
}

export async function showSegment(call: Call): Promise<ExitCode> {
  const { io, args, isOn } = call;
  const name = args[0]!;
  return withServer(call, 'show', async ({ client }, control) => {
    const segment = await client.getSegment(name, control);
    if (segment === null) return noSegment(io, client, name);
    if (isOn('json')) return printJson(io, segment);
    printLines(io, segmentText(segment, io.nowMs(), widthOf(io)));
    return exitCodes.done;
  });
}

export async function previewSegment(call: Call): Promise<ExitCode> {
  const { io, args, isOn } = call;
  return withServer(call, 'preview', ({ client }, control) =>
    withCondition(io, args[0]!, async ({ condition }) => {
      const preview = await client.previewSegment(condition, control);
      if (isOn('json')) return printJson(io, preview);
      printLines(io, previewText(condition, preview, widthOf(io)));
      return exitCodes.done;
    }),
  );
}

export async function saveSegment(call: Call): Promise<ExitCode> {
  const { io, args, option } = call;
  const [name, file] = args as readonly [string, string];
  return withServer(call, 'save', ({ client }, control) =>
    withCondition(io, file, async ({ condition, note }) => {
      const definition = { condition, note: option('note') ?? note };
      return showEvaluated(call, await client.saveSegment(name, definition, control), 'saved');
    }),
  );
}

export async function refreshSegment(call: Call): Promise<ExitCode> {
  const { io, args } = call;
  const name = args[0]!;
  return withServer(call, 'refresh', async ({ client }, control) => {
    const segment = await client.refreshSegment(name, control);
    return segment === null ? noSegment(io, client, name) : showEvaluated(call, segment, 'evaluated');
  });
}

export async function deleteSegment(call: Call): Promise<ExitCode> {
  const { io, args, isOn } = call;
  const name = args[0]!;
  return withServer(call, 'delete', async ({ client }, control) => {
    if (!(await client.deleteSegment(name, control))) return noSegment(io, client, name);
    if (isOn('json')) return printJson(io, { name, deleted: true });
    io.out(`deleted the segment ${name}, its members and their changes`);
    return exitCodes.done;
  });
}

export async function explainMember(call: Call): Promise<ExitCode> {
  const { io, args, isOn } = call;
  const [name, customerId] = args as readonly [string, string];
  return withServer(call, 'why', async ({ client }, control) => {
    const segment = await client.getSegment(name, control);
    if (segment === null) return noSegment(io, client, name);
    const explanation = await client.explainMember(name, customerId, control);
    if (explanation === null) {
      return failed(io, `there is no customer ${quote(customerId)}, or the customer is deleted`);
    }
    if (isOn('json')) return printJson(io, explanation);
    printLines(io, explanationText(name, segment.condition, explanation, widthOf(io)));
    return exitCodes.done;
  });
}

interface MemberFormat {
  readonly header: string;
  readonly line: (member: SegmentMember) => string;
}

const memberFormats: Readonly<Record<string, MemberFormat>> = {
  table: {
    header: `${'CUSTOMER'.padEnd(36)}  SINCE\n`,
    line: ({ customer_id, since }) => `${customer_id}  ${since}\n`,
  },
  ndjson: { header: '', line: (member) => `${JSON.stringify(member)}\n` },
  csv: {
    header: csvLine(['customer_id', 'since']),
    line: ({ customer_id, since }) => csvLine([customer_id, since]),
  },
};

export async function listMembers(call: Call): Promise<ExitCode> {
  const { io, args, option } = call;
  const given = option('format') ?? 'table';
  if (!Object.hasOwn(memberFormats, given)) {
    const known = Object.keys(memberFormats).join(', ');
    return misused(io, `--format must be one of ${known}, not ${quote(given)}`);
  }
  return withServer(call, 'members', async ({ client, url }, control) => {
    const members = client.segmentMembers(args[0]!, { ...control, pageSize: MEMBERS_AT_ONCE });
    try {
      await writeToOutput(memberPieces(members, memberFormats[given]!));
    } catch (error) {
      if (error instanceof HeadgateError) throw error;
      return failed(io, whyNotWritten(error, url, null));
    }
    return exitCodes.done;
  });
}

async function* memberPieces(
  members: AsyncIterable<SegmentMember>,
  { header, line }: MemberFormat,
): AsyncIterable<string> {
  let lines: string[] = [];
  let isFirst = true;
  for await (const member of members) {
    if (isFirst) yield header;
    isFirst = false;
    lines.push(line(member));
    if (lines.length < MEMBERS_AT_ONCE) continue;
    yield lines.join('');
    lines = [];
  }
  yield (isFirst ? header : '') + lines.join('');
}

async function withServer(
  call: Call,
  command: string,
  use: (server: Server, control: ReadOptions) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { io } = call;
  const server = await connect(call, `segments ${command}`);
  if (server instanceof Failure) return misused(io, server);
  const reason = await server.whyNotServing();
  if (reason !== null) return failed(io, reason);
  return untilSignal(async (signal) => {
    try {
      return await use(server, { signal, onRetry: server.onRetry });
    } catch (error) {
      if (error instanceof AbortedError) return failed(io, 'it was interrupted');
      if (isAboutSegment(error)) return failed(io, error.message);
      if (error instanceof HeadgateError) return failed(io, whyFailed(error, server.url));
      throw error;
    }
  });
}

/** Returns whether Headgate has refused what was asked for: the sentence is then enough. */
function isAboutSegment(error: unknown): error is RefusedError {
  return error instanceof RefusedError && error.error !== null && [400, 404, 409].includes(error.status);
}

async function noSegment(io: Io, client: HeadgateClient, name: string): Promise<ExitCode> {
  const names = (await client.segments()).map((segment) => segment.name);
  const near = nearName(name, names);
  const hint = near === null ? '`headgate segments list` shows all' : `did you mean ${near}?`;
  return failed(io, `there is no segment ${quote(name)}; ${hint}`);
}

/** Prints a segment after its evaluation. A failed evaluation is a failure of the command. */
function showEvaluated({ io, isOn }: Call, segment: Segment, verb: 'saved' | 'evaluated'): ExitCode {
  const { failure } = segment;
  if (isOn('json')) printJson(io, segment);
  else if (failure === null) io.out(`${verb}: ${outcomeText(segment)}`);
  if (failure === null) return exitCodes.done;
  const saved = verb === 'saved' ? 'is saved, but ' : '';
  return failed(io, `the segment ${saved}cannot be evaluated, so its members stay: ${failure.message}`);
}

async function readCondition(file: string): Promise<GivenCondition | Failure> {
  const text = await readInput(file);
  if (text instanceof Failure) return text;
  const named = file === '-' ? 'standard input' : `the file ${quote(file)}`;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return new Failure(`${named} is not JSON: ${(error as Error).message}`);
  }
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, 'condition')) {
    return { condition: value as Condition, note: null, text, path: '' };
  }
  const { condition, note = null } = value as { condition: Condition; note?: unknown };
  if (note !== null && typeof note !== 'string') return new Failure(`the note in ${named} must be a text`);
  return { condition, note, text, path: 'condition' };
}

/** Reads a condition and uses it. If the server finds that it is not valid, shows the place in the file. */
async function withCondition(
  io: Io,
  file: string,
  use: (given: GivenCondition) => Promise<ExitCode>,
): Promise<ExitCode> {
  const given = await readCondition(file);
  if (given instanceof Failure) return misused(io, given);
  try {
    return await use(given);
  } catch (error) {
    if (!(error instanceof RefusedError) || error.path === null) throw error;
    const { text, path } = given;
    const whole = [path, error.path].filter((part) => part !== '').join('.');
    failed(io, error.message);
    const place = placeInQuery(text, placeInJson(text, whole), io.widthCharacters || undefined);
    for (const line of place) io.err(line);
    return exitCodes.failed;
  }
}

function printLines(io: Io, lines: readonly string[]): void {
  for (const line of lines) io.out(line);
}

function widthOf({ outWidthCharacters }: Io): number {
  return outWidthCharacters || USUAL_WIDTH_CHARACTERS;
}
