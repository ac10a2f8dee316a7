// Ingests one upload: parses and validates its records, resolves their references, decides between records with the
// same id, stores the records and describes the outcome. All batches of an upload are written in one transaction, so
// the decision between records with the same id holds for the whole upload, even if the store fails.

import { quote, typeNameOf } from '@headgate/catalogue/kinds/kind.ts';
import {
  INTERACTIONS,
  type UploadTypeName,
  uploadTypeNames,
  uploadTypes,
} from '@headgate/catalogue/record-types.ts';
import { Failure } from '../failure.ts';
import type { Written } from '../store/idempotency-records.ts';
import type { EntryOrigin } from '../store/ledger.ts';
import type { OrganisationNumber, Row, Tally } from '../store/rows.ts';
import { type Store, StoreUnavailable } from '../store/store.ts';
import { uuidV7 } from '../uuid-v7.ts';
import {
  type Checked,
  checkFields,
  DroppedFields,
  type FieldPlan,
  type Handling,
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
import { readJson, type UnreadableBody } from './json.ts';
import type { KnownRecords } from './known-records.ts';
import {
  type BatchOutcome,
  type CheckedBatch,
  type CheckedUpload,
  howToSendAgain,
  type Outcome,
  outcomeOf,
  type Problem,
  problem,
  type Warning,
} from './outcome.ts';
import { resolveReferences } from './references.ts';
import { rejectionsOf } from './rejections.ts';
import { completeInteraction } from './take-interaction.ts';

export interface UploadLimits {
  readonly batchSize: number;
  readonly maxRecords: number;
}

export interface UploadRequest {
  readonly requestId: string;
  readonly organisation: OrganisationNumber;
  readonly type: UploadTypeName;
  readonly body: Uint8Array;
  readonly handling: Handling;
  readonly dryRun: boolean;
  readonly idempotency: IdempotencyKey | null;
  readonly origin: EntryOrigin;
}

export type UploadTaken =
  | { readonly kind: 'taken'; readonly outcome: Outcome; readonly replayed: boolean }
  | UnreadableBody
  | KeyTaken
  | KeyRunning;

interface UploadPlan extends FieldPlan {
  readonly keyColumn: number;
  /** Undefined for interactions, of which the first one with an id is stored. */
  readonly updatedColumn: number | undefined;
}

/**
 * The limits for the parsed body, per record. A valid record is one object with about fifteen keys. The limits are
 * higher, so that unknown fields can be reported one by one. They are not higher still, because V8 takes hundreds of
 * megabytes of memory for records that all have different keys.
 */
const CONTAINERS_PER_RECORD = 40;
const MEMBERS_PER_RECORD = 40;
/**
 * The most problems that are listed for one upload, in addition to the first problem of each rejected record. Further
 * problems are only counted, because a response with all of them could take 30 MB.
 */
const MOST_FURTHER_PROBLEMS = 5000;

const plans = Object.fromEntries(
  uploadTypeNames.map((type) => {
    const plan = planOf(uploadTypes[type].fields);
    const keyColumn = plan.columnOf.get(uploadTypes[type].key)!;
    return [type, { ...plan, keyColumn, updatedColumn: plan.columnOf.get('updated') }];
  }),
) as Record<UploadTypeName, UploadPlan>;

/** Resolves to the outcome of an upload. Calls `onBodyRead` when the body's bytes are no longer needed. */
export async function takeUpload(
  request: UploadRequest,
  store: Pick<Store, 'storedResponse' | 'write' | 'dryRun' | 'entryNumber'>,
  known: KnownRecords,
  limits: UploadLimits,
  onBodyRead: () => void = () => {},
): Promise<UploadTaken> {
  // A dry run ignores its idempotency key, because its response must never be replayed for a real upload.
  const idempotency = request.dryRun ? null : request.idempotency;
  const earlier = await findEarlierResponse(request, idempotency, store);
  const { organisation } = request;
  if (earlier.kind === 'replay' || earlier.kind === 'key_taken') return replay(earlier, organisation, store);
  const begun = await begin(request, idempotency, earlier, store, known, limits, onBodyRead);
  if ('kind' in begun) return begun;
  const { upload, ids, writing } = begun;
  const written = await writing;
  if (written.kind === 'replay')
    return replay(matchEarlierResponse(written.stored, begun.fingerprint), organisation, store);
  if (written.kind === 'running') return { kind: 'key_running' };
  const outcome =
    written.kind === 'written'
      ? outcomeOf(upload, written.tallies, written.seq)
      : failedOutcome(upload, ids, written.failure);
  return { kind: 'taken', outcome, replayed: false };
}

interface Failed {
  readonly kind: 'failed';
  readonly failure: string;
}

/**
 * The data that is kept for an upload while it waits for the store. The records are not part of it, because the records
 * of all waiting uploads would take most of the memory and most of the garbage collector's time.
 */
interface Begun {
  readonly upload: CheckedUpload;
  /** The id of every record, or null if the record has no valid id. */
  readonly ids: readonly (string | null)[];
  readonly fingerprint: string;
  readonly writing: Written | Failed | Promise<Written | Failed>;
}

async function begin(
  request: UploadRequest,
  idempotency: IdempotencyKey | null,
  earlier: Exclude<EarlierResponse, { kind: 'replay' | 'key_taken' }>,
  store: Pick<Store, 'write' | 'dryRun'>,
  known: KnownRecords,
  limits: UploadLimits,
  onBodyRead: () => void,
): Promise<Begun | UnreadableBody> {
  const records = readRecords(request, limits);
  onBodyRead();
  if (records instanceof Failure) return { kind: 'unreadable', message: records.reason };
  const { organisation, type, dryRun, handling } = request;
  const plan = plans[type];
  const { checked, dropped } = checkRecords(plan, records, handling, limits.batchSize);
  const failed =
    earlier.kind === 'unavailable'
      ? failedBecause(earlier.reason)
      : await unlessUnavailable(resolveReferences(plan, checked, organisation, known));
  if (type === INTERACTIONS) completeInteractions(checked);
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
    idempotency && (await idempotencyRecordOf(idempotency, organisation, fingerprint, upload));
  const write = (): Promise<Written> => {
    const entry = { ...request.origin, ...rejectionsOf(upload) };
    return store.write({ organisation, type, batches, idempotencyRecord, entry });
  };
  const writing = dryRun ? store.dryRun({ organisation, type, batches }).then(wouldBeWritten) : write();
  return { ...begun, writing: unlessUnavailable(writing) };
}

async function unlessUnavailable<Result>(work: Promise<Result>): Promise<Result | Failed> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    return failedBecause(error.message);
  }
}

function wouldBeWritten(tallies: readonly Tally[]): Written {
  return { kind: 'written', tallies, seq: null };
}

function failedBecause(failure: string): Failed {
  return { kind: 'failed', failure };
}

async function replay(
  again: ReturnType<typeof matchEarlierResponse>,
  organisation: OrganisationNumber,
  store: Pick<Store, 'entryNumber'>,
): Promise<UploadTaken> {
  if (again.kind === 'key_taken') return again;
  const { stored } = again;
  const upload = unpackResponse<CheckedUpload>(stored.response);
  const seq = await unlessUnavailable(store.entryNumber(organisation, upload.requestId));
  if (seq !== null && typeof seq === 'object') {
    const ids = upload.batches.flatMap(({ received }) => Array.from({ length: received }, () => null));
    return { kind: 'taken', outcome: failedOutcome(upload, ids, seq.failure), replayed: false };
  }
  return { kind: 'taken', outcome: outcomeOf(upload, stored.tallies, seq), replayed: true };
}

/** Returns the records of the body, or a failure that says why the body cannot be read. */
function readRecords(
  { body, type, handling }: UploadRequest,
  { maxRecords }: UploadLimits,
): unknown[] | Failure {
  const read = readJson(body, {
    containers: CONTAINERS_PER_RECORD * (maxRecords + 2),
    members: MEMBERS_PER_RECORD * (maxRecords + 2),
    keys: MEMBERS_PER_RECORD * (maxRecords + 2),
    advice: `send at most ${maxRecords} records in one request`,
  });
  if (read instanceof Failure) return read;
  const { value } = read;
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    return new Failure(`The body must be an object {"records": […]}, not ${typeNameOf(value)}.`);
  }
  if (!Object.hasOwn(value, 'records'))
    return new Failure('The body has no "records"; send {"records": […]}.');
  const { records } = value as { records: unknown };
  if (!Array.isArray(records))
    return new Failure(`"records" must be an array of ${type}, not ${typeNameOf(records)}.`);
  const stranger = Object.keys(value).find((name) => name !== 'records');
  if (stranger !== undefined && handling === 'strict') {
    return new Failure(`The body has the unknown field ${quote(stranger)} beside "records".`);
  }
  if (records.length === 0) return new Failure('"records" is empty; send at least one record.');
  if (records.length > maxRecords) {
    return new Failure(`"records" has ${records.length} records; send at most ${maxRecords} in one request.`);
  }
  return records;
}

/** Checks all records. `dropped` contains the unknown fields of each batch. It is empty if the handling is strict. */
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

function completeInteractions(checked: readonly Checked[]): void {
  const nowMs = Date.now();
  for (const { row, problems } of checked) if (problems === null) completeInteraction(row, nowMs);
}

/**
 * Returns the indexes of the valid records that are replaced by another record of the request with the same id. If both
 * records have `updated` and the values differ, the record with the older value is replaced. Otherwise the record that
 * comes first in the request is replaced. Interactions are never replaced, so the first one with an id is kept.
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
    const isReplaced = updatedColumn === undefined || isOlder(row, checked[rival]!.row, updatedColumn);
    superseded.add(isReplaced ? index : rival);
    if (!isReplaced) winners.set(id, index);
  }
  return superseded;
}

function isOlder(row: Row, rival: Row, updatedColumn: number): boolean {
  const updated = row[updatedColumn]!;
  const rivalUpdated = rival[updatedColumn]!;
  return updated !== null && rivalUpdated !== null && updated < rivalUpdated;
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
 * Returns the outcome of an upload that the store did not confirm. Every valid record is reported as
 * `store_unavailable`. A batch without a valid record is refused instead of failed, because sending it again would not
 * help.
 */
function failedOutcome(
  { requestId, type, dryRun, batches }: CheckedUpload,
  ids: Begun['ids'],
  failure: string,
): Outcome {
  const unavailable = `was not confirmed by the store. ${howToSendAgain(type)}`;
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
                  problem(first + at, id, null, 'store_unavailable', unavailable),
                ],
            ),
          omittedProblems,
          warnings,
        };
      },
    ),
    failure,
    seq: null,
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
