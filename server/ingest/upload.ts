// Takes in one upload: read → validate → resolve references → decide between duplicates → write → outcome.
// All batches of an upload are written in one transaction, so which of two duplicates stays is decided for
// the whole request and holds whatever happens to the store.

import { quote, typeNameOf } from '@headgate/catalogue/kinds/kind.ts';
import { type RecordTypeName, recordTypeNames, recordTypes } from '@headgate/catalogue/record-types.ts';
import type { Written } from '../store/idempotency-records.ts';
import type { OrganisationNumber, Row, Tally } from '../store/rows.ts';
import { type Store, StoreUnavailable } from '../store/store.ts';
import { uuidV7 } from '../uuid-v7.ts';
import {
  type Checked,
  checkFields,
  DroppedFields,
  type Handling,
  type Plan,
  type ProblemRoom,
  planOf,
} from './check-fields.ts';
import {
  type EarlierResponse,
  findEarlierResponse,
  type IdempotencyKey,
  idempotencyRecordOf,
  type KeyRunning,
  type KeyTaken,
  matchEarlierResponse,
  unpackResponse,
} from './idempotency.ts';
import { readJson, type Unreadable } from './json.ts';
import type { KnownRecords } from './known-records.ts';
import {
  type BatchOutcome,
  type CheckedBatch,
  type CheckedUpload,
  type Outcome,
  outcomeOf,
  type Problem,
  problem,
  type Warning,
} from './outcome.ts';
import { resolveReferences } from './references.ts';

export interface UploadLimits {
  readonly batchSize: number;
  readonly maxRecords: number;
}

export interface UploadRequest {
  readonly requestId: string;
  readonly organisation: OrganisationNumber;
  readonly type: RecordTypeName;
  readonly body: Uint8Array;
  readonly handling: Handling;
  readonly dryRun: boolean;
  readonly idempotency: IdempotencyKey | null;
}

export type UploadTaken =
  | { readonly kind: 'taken'; readonly outcome: Outcome; readonly replayed: boolean }
  | Unreadable
  | KeyTaken
  | KeyRunning;

interface UploadPlan extends Plan {
  readonly keyColumn: number;
  readonly updatedColumn: number;
}

/**
 * A good record is one object of some fifteen keys; this leaves room for wrong ones to be named one by one. V8 keeps
 * different names for every record in hundreds of megabytes, so there is not much more room.
 */
const CONTAINERS_PER_RECORD = 40;
const MEMBERS_PER_RECORD = 40;
/**
 * Every rejected record is reported with at least one problem. Its further problems are reported up to this number in an
 * upload, and counted beyond it: all of them could fill a response of 30 MB.
 */
const MOST_FURTHER_PROBLEMS = 5000;
const NOTHING_WRITTEN: Tally = { created: 0, updated: 0, unchanged: 0 };
const STORE_UNAVAILABLE = 'was not confirmed by the store. Send it again as it is; that is safe';

const plans = Object.fromEntries(
  recordTypeNames.map((type) => {
    const plan = planOf(recordTypes[type].fields);
    const keyColumn = plan.columnOf.get(recordTypes[type].key)!;
    return [type, { ...plan, keyColumn, updatedColumn: plan.columnOf.get('updated')! }];
  }),
) as Record<RecordTypeName, UploadPlan>;

/** `onBodyRead`: from then on the body's bytes are not needed any more. */
export async function takeUpload(
  request: UploadRequest,
  store: Pick<Store, 'storedResponse' | 'write'>,
  known: KnownRecords,
  limits: UploadLimits,
  onBodyRead: () => void = () => {},
): Promise<UploadTaken> {
  // A dry run does nothing that could be done twice, and its answer must never stand in for a real one.
  const idempotency = request.dryRun ? null : request.idempotency;
  const earlier = await findEarlierResponse(request, idempotency, store);
  if (earlier.kind === 'replay' || earlier.kind === 'key_taken') return replay(earlier);
  const begun = await begin(request, idempotency, earlier, store, known, limits, onBodyRead);
  if ('kind' in begun) return begun;
  const { upload, ids, writing } = begun;
  const written = await writing;
  if (written.kind === 'replay') return replay(matchEarlierResponse(written.stored, begun.fingerprint));
  if (written.kind === 'running') return { kind: 'key_running' };
  const outcome =
    written.kind === 'written'
      ? outcomeOf(upload, written.tallies)
      : failedOutcome(upload, ids, written.failure);
  return { kind: 'taken', outcome, replayed: false };
}

interface Failed {
  readonly kind: 'failed';
  readonly failure: string;
}

/**
 * What is kept of an upload until it is written, beside what the store keeps of it. The records are not: held by every
 * upload that waits for the store, they would be most of the memory, and most of what the collector has to move about.
 */
interface Begun {
  readonly upload: CheckedUpload;
  /** Of every record, null where it has none that can be read. */
  readonly ids: readonly (string | null)[];
  readonly fingerprint: string;
  readonly writing: Written | Failed | Promise<Written | Failed>;
}

async function begin(
  request: UploadRequest,
  idempotency: IdempotencyKey | null,
  earlier: Exclude<EarlierResponse, { kind: 'replay' | 'key_taken' }>,
  store: Pick<Store, 'write'>,
  known: KnownRecords,
  limits: UploadLimits,
  onBodyRead: () => void,
): Promise<Begun | Unreadable> {
  const records = readRecords(request, limits);
  onBodyRead();
  if (typeof records === 'string') return { kind: 'unreadable', message: records };
  const { organisation, type, dryRun, handling } = request;
  const plan = plans[type];
  const { checked, dropped } = checkRecords(plan, records, handling, limits.batchSize);
  const failed =
    earlier.kind === 'unavailable'
      ? failedBecause(earlier.reason)
      : await unlessUnavailable(resolveReferences(plan, checked, organisation, known));
  const superseded = findSuperseded(plan, checked);
  const upload = describe(request, plan, checked, superseded, dropped, limits.batchSize);
  const fingerprint = earlier.kind === 'first' ? earlier.fingerprint : '';
  const begun = { upload, ids: checked.map((record) => idOf(record, plan)), fingerprint };
  if (failed !== undefined) return { ...begun, writing: failed };
  const isWritten = (record: Checked, index: number): boolean =>
    record.problems === null && !superseded.has(index);
  const batches = inBatches(checked, limits.batchSize).map(({ first, batch }) =>
    batch.filter((record, at) => isWritten(record, first + at)).map(({ row }): Row => row),
  );
  const idempotencyRecord =
    idempotency && idempotencyRecordOf(idempotency, organisation, fingerprint, upload);
  const isNothing = idempotencyRecord === null && batches.every((rows) => rows.length === 0);
  return {
    ...begun,
    writing: isNothing
      ? { kind: 'written', tallies: batches.map(() => NOTHING_WRITTEN) }
      : unlessUnavailable(store.write({ organisation, type, batches, dryRun, idempotencyRecord })),
  };
}

async function unlessUnavailable<Result>(work: Promise<Result>): Promise<Result | Failed> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    return failedBecause(error.message);
  }
}

function failedBecause(failure: string): Failed {
  return { kind: 'failed', failure };
}

function replay(again: ReturnType<typeof matchEarlierResponse>): UploadTaken {
  if (again.kind === 'key_taken') return again;
  const { stored } = again;
  const upload = unpackResponse<CheckedUpload>(stored.response);
  return { kind: 'taken', outcome: outcomeOf(upload, stored.tallies), replayed: true };
}

/** The records of the body, or a sentence on why it has none that can be looked at. */
function readRecords(
  { body, type, handling }: UploadRequest,
  { maxRecords }: UploadLimits,
): unknown[] | string {
  const read = readJson(body, {
    containers: CONTAINERS_PER_RECORD * (maxRecords + 2),
    members: MEMBERS_PER_RECORD * (maxRecords + 2),
    advice: `send at most ${maxRecords} records in one request`,
  });
  if ('unreadable' in read) return read.unreadable;
  const { value } = read;
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    return `The body must be an object {"records": […]}, not ${typeNameOf(value)}.`;
  }
  if (!Object.hasOwn(value, 'records')) return 'The body has no "records"; send {"records": […]}.';
  const { records } = value as { records: unknown };
  if (!Array.isArray(records)) return `"records" must be an array of ${type}, not ${typeNameOf(records)}.`;
  const stranger = Object.keys(value).find((name) => name !== 'records');
  if (stranger !== undefined && handling === 'strict') {
    return `The body has the unknown field ${quote(stranger)} beside "records".`;
  }
  if (records.length === 0) return '"records" is empty; send at least one record.';
  if (records.length > maxRecords) {
    return `"records" has ${records.length} records; send at most ${maxRecords} in one request.`;
  }
  return records;
}

/** `dropped`: per batch, what lenient handling leaves out; empty if handling is strict. */
function checkRecords(
  plan: UploadPlan,
  records: readonly unknown[],
  handling: Handling,
  batchSize: number,
): { checked: readonly Checked[]; dropped: readonly DroppedFields[] } {
  const dropped: DroppedFields[] = [];
  const room: ProblemRoom = { further: MOST_FURTHER_PROBLEMS };
  const checked = records.map((record, index) => {
    if (handling === 'lenient' && index % batchSize === 0) dropped.push(new DroppedFields());
    return checkFields(plan, record, dropped.at(-1) ?? null, room);
  });
  return { checked, dropped };
}

/**
 * The good records that lose to another of the request with the same id: the one with the older `updated`
 * where both carry it, otherwise the earlier one.
 */
function findSuperseded(
  { keyColumn, updatedColumn }: UploadPlan,
  checked: readonly Checked[],
): ReadonlySet<number> {
  const superseded = new Set<number>();
  const winners = new Map<string, number>();
  for (let index = 0; index < checked.length; index++) {
    const { row, problems } = checked[index]!;
    if (problems !== null) continue;
    const id = row[keyColumn] as string;
    const rival = winners.get(id);
    if (rival === undefined) {
      winners.set(id, index);
      continue;
    }
    const updated = row[updatedColumn] as string | null;
    const rivalUpdated = checked[rival]!.row[updatedColumn] as string | null;
    const isOlder = updated !== null && rivalUpdated !== null && updated < rivalUpdated;
    superseded.add(isOlder ? index : rival);
    if (!isOlder) winners.set(id, index);
  }
  return superseded;
}

function describe(
  { requestId, type, dryRun }: UploadRequest,
  plan: UploadPlan,
  checked: readonly Checked[],
  superseded: ReadonlySet<number>,
  dropped: readonly DroppedFields[],
  batchSize: number,
): CheckedUpload {
  const batches = inBatches(checked, batchSize).map(({ first, batch }, number): CheckedBatch => {
    const problems = batch.flatMap((record, at) => problemsOf(record, first + at, plan));
    return {
      batchId: uuidV7(),
      received: batch.length,
      rejected: batch.reduce((count, record) => count + (record.problems === null ? 0 : 1), 0),
      superseded: batch.reduce((count, _, at) => count + (superseded.has(first + at) ? 1 : 0), 0),
      problems,
      omittedProblems: batch.reduce((count, record) => count + record.omittedProblems, 0),
      warnings: warningsOf(dropped[number]),
    };
  });
  return { requestId, type, dryRun, batches };
}

/**
 * Nothing was stored: every record that had no problem of its own is named with the store's. A batch in which none
 * was good is refused for what it is, since sending it again would not help.
 */
function failedOutcome(
  { requestId, type, dryRun, batches }: CheckedUpload,
  ids: Begun['ids'],
  failure: string,
): Outcome {
  let next = 0;
  return {
    requestId,
    type,
    dryRun,
    batches: batches.map(
      ({ batchId, received, rejected, problems, omittedProblems, warnings }): BatchOutcome => {
        const ownProblems = Map.groupBy(problems, ({ index }) => index);
        const first = next;
        next += received;
        return {
          batchId,
          result: rejected < received ? 'failed' : 'refused',
          counts: { received, created: 0, updated: 0, unchanged: 0, rejected: received },
          problems: ids
            .slice(first, next)
            .flatMap(
              (id, at) =>
                ownProblems.get(first + at) ?? [
                  problem(first + at, id, null, 'store_unavailable', STORE_UNAVAILABLE),
                ],
            ),
          omittedProblems,
          warnings,
        };
      },
    ),
    failure,
  };
}

function problemsOf(record: Checked, index: number, plan: UploadPlan): readonly Problem[] {
  if (record.problems === null) return [];
  const id = idOf(record, plan);
  return record.problems.map(({ field, code, message }) => problem(index, id, field, code, message));
}

function idOf({ row }: Checked, { keyColumn }: UploadPlan): string | null {
  return (row[keyColumn] ?? null) as string | null;
}

function warningsOf(dropped: DroppedFields | undefined): readonly Warning[] {
  if (dropped === undefined) return [];
  const warning = (field: string | null, count: number): Warning => ({
    code: 'unknown_field',
    field,
    count,
    message: `${field ?? 'further fields'} not known to this type: dropped`,
  });
  const named = [...dropped.named].map(([field, count]) => warning(field, count));
  return dropped.others === 0 ? named : [...named, warning(null, dropped.others)];
}

function inBatches<T>(items: readonly T[], batchSize: number): { first: number; batch: readonly T[] }[] {
  const batches = [];
  for (let first = 0; first < items.length; first += batchSize) {
    batches.push({ first, batch: items.slice(first, first + batchSize) });
  }
  return batches;
}
