// A thread on which uploads and interactions are unpacked, parsed, checked and answered, so that the thread that serves
// connections only ever moves bytes. Organisations take turns by the time that their requests take.

import { parentPort, workerData } from 'node:worker_threads';
import type { RecordTypeName } from '@headgate/catalogue/record-types.ts';
import { FairQueue } from '../fair-queue.ts';
import type { Handling } from '../ingest/check-fields.ts';
import type { IdempotencyKey } from '../ingest/idempotency.ts';
import { takeInteraction } from '../ingest/interaction.ts';
import { KnownRecords } from '../ingest/known-records.ts';
import { takeUpload, type UploadLimits } from '../ingest/upload.ts';
import type { ThreadLabel } from '../observe/metrics.ts';
import { WorkWatch, type WriteCount } from '../observe/work-watch.ts';
import { attachStore, type StoreHandle } from '../store/open-store.ts';
import type { OrganisationNumber } from '../store/rows.ts';
import { type Answer, answerOfInteraction, answerOfRefusal, answerOfUpload } from './answers.ts';
import type { ContentEncoding } from './read-body.ts';
import { isSmall, SMALL_BODY_BYTES } from './small-body.ts';
import { unpack } from './unpack.ts';

export interface IngestThreadData {
  readonly label: ThreadLabel;
  readonly store: StoreHandle;
  readonly limits: UploadLimits;
  readonly maxBodyBytes: number;
  readonly writeCount: WriteCount;
  readonly isTraced: boolean;
}

export type IngestJob = readonly [
  id: number,
  requestId: string,
  organisation: OrganisationNumber,
  /** Null for an interaction. */
  type: RecordTypeName | null,
  handling: Handling,
  dryRun: boolean,
  idempotency: IdempotencyKey | null,
  encoding: ContentEncoding | null,
  bodyStart: number,
  bodyBytes: number,
];

export interface IngestMessage {
  /** IngestJob[]; as text it crosses threads in half the time. */
  readonly jobsJson: string;
  /** Their bodies. */
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/**
 * Null for a body that is too large for the thread for small requests. `bug`: the job threw, which nothing that a client
 * sends should make it do.
 */
export type JobResult =
  | readonly [id: number, answer: Answer | null]
  | readonly [id: number, answer: null, bug: string];

interface WaitingJob {
  readonly job: IngestJob;
  /** The job's body as it came. */
  readonly packed: Uint8Array<ArrayBuffer>;
}

/**
 * Parsed uploads take several times the room of their unpacked bytes, so only so many of these are worked on at
 * once; the rest waits as it came. Enough for the store to find several uploads waiting and commit them together.
 */
const ORGANISATION_WORKED_ON_BYTES = 8 * 1024 * 1024;
/**
 * Everything else that the thread does, such as handing rows to the store, happens between turns. So no large request
 * is started in the same turn as another one, and no further small one after so long.
 */
const MOST_STARTED_PER_TURN: Readonly<Record<ThreadLabel, number>> = { small: 32, large: 1 };
const TURN_MS = 5;
/** What is done after a call of the store is not measured but counted by the bytes that come and go, at this rate. */
const BYTES_PER_MS = 50_000;

const { label, store: handle, limits, maxBodyBytes, writeCount, isTraced } = workerData as IngestThreadData;
const port = parentPort!;
const store = await attachStore(handle);
const known = new KnownRecords(store);
/** More than one organisation can hold: one whose store does not answer leaves room for the others. */
const ALL_WORKED_ON_BYTES = maxBodyBytes + 2 * ORGANISATION_WORKED_ON_BYTES;
const waiting = new FairQueue<WaitingJob>();
const workedOnBytes = new Map<OrganisationNumber, number>();
let allWorkedOnBytes = 0;
let isTurnDue = false;
let turnStartedAtMs = 0;
/** The organisation whose job was started last in this turn, and when. */
let atWork: { readonly organisation: OrganisationNumber; readonly startedAtMs: number } | null = null;
let finished: JobResult[] = [];

port.on('message', ({ jobsJson, bytes }: IngestMessage) => {
  for (const job of JSON.parse(jobsJson) as IngestJob[]) {
    const [, , organisation, , , , , , bodyStart, bodyBytes] = job;
    waiting.push(organisation, { job, packed: bytes.subarray(bodyStart, bodyStart + bodyBytes) });
  }
  takeTurn();
});

/**
 * Each job of a turn is started by an immediate of its own: all that it does before it waits for the store is done when
 * the next immediate runs, and can be measured.
 */
function takeTurn(): void {
  if (isTurnDue || waiting.size === 0) return;
  isTurnDue = true;
  setImmediate(beginTurn);
  for (let jobs = Math.min(waiting.size, MOST_STARTED_PER_TURN[label]); jobs > 0; jobs--)
    setImmediate(startNext);
  setImmediate(endTurn);
}

function beginTurn(): void {
  // Who is done must not wait for who begins.
  report();
  turnStartedAtMs = performance.now();
}

function startNext(): void {
  const nowMs = chargeForTime();
  if (nowMs - turnStartedAtMs > TURN_MS || allWorkedOnBytes >= ALL_WORKED_ON_BYTES) return;
  const next = waiting.shift(hasRoom);
  if (next === undefined) return;
  atWork = { organisation: next.job[2], startedAtMs: nowMs };
  start(next);
}

function endTurn(): void {
  chargeForTime();
  isTurnDue = false;
  if (allWorkedOnBytes >= ALL_WORKED_ON_BYTES || waiting.peek(hasRoom) === undefined) return;
  // The next turn is asked for in a turn of its own, so that what was started reaches the store before it.
  setImmediate(takeTurn);
}

/** Returns the time. */
function chargeForTime(): number {
  const nowMs = performance.now();
  if (atWork !== null) waiting.charge(atWork.organisation, nowMs - atWork.startedAtMs);
  atWork = null;
  return nowMs;
}

function hasRoom(organisation: OrganisationNumber): boolean {
  return (workedOnBytes.get(organisation) ?? 0) < ORGANISATION_WORKED_ON_BYTES;
}

function holdBytes(organisation: OrganisationNumber, bytes: number): void {
  allWorkedOnBytes += bytes;
  const held = (workedOnBytes.get(organisation) ?? 0) + bytes;
  if (held === 0) workedOnBytes.delete(organisation);
  else workedOnBytes.set(organisation, held);
}

function start({ job, packed }: WaitingJob): void {
  const [id, requestId, organisation, , , , , encoding] = job;
  const mustBeSmall = label === 'small' && encoding !== null;
  const body = unpack({ bytes: packed, encoding }, mustBeSmall ? SMALL_BODY_BYTES : maxBodyBytes);
  const isRefused = 'refusal' in body;
  if (mustBeSmall && (isRefused ? body.refusal === 'content_too_large' : !isSmall(body))) {
    finish([id, null]);
    return;
  }
  if (isRefused) {
    giveBack(packed);
    finish([id, answerOfRefusal(body, requestId)]);
    return;
  }
  const { byteLength } = body;
  waiting.charge(organisation, byteLength / BYTES_PER_MS);
  holdBytes(organisation, byteLength);
  const giveBackBody = (): void => {
    giveBack(packed);
    giveBack(body);
  };
  void answer(job, body, giveBackBody)
    .then(
      (made): JobResult => {
        waiting.charge(organisation, made.json.length / BYTES_PER_MS);
        return [id, made];
      },
      (error: unknown): JobResult => [id, null, stackOf(error)],
    )
    .then((result) => {
      holdBytes(organisation, -byteLength);
      giveBackBody();
      finish(result);
      takeTurn();
    });
}

/** Frees a body that has a buffer to itself now instead of when the collector comes. */
function giveBack({ buffer, byteLength }: Uint8Array<ArrayBuffer>): void {
  if (buffer.byteLength === byteLength && !buffer.detached) buffer.transfer(0);
}

/** What was committed together is reported together. */
function finish(result: JobResult): void {
  if (finished.push(result) === 1) setImmediate(report);
}

function report(): void {
  if (finished.length === 0) return;
  port.postMessage(finished, buffersOf(finished));
  finished = [];
}

function buffersOf(results: readonly JobResult[]): ArrayBuffer[] {
  return results.flatMap(([, made]) => (made?.json instanceof Uint8Array ? [made.json.buffer] : []));
}

async function answer(job: IngestJob, body: Uint8Array, onBodyRead: () => void): Promise<Answer> {
  const [, requestId, organisation, type, handling, dryRun, idempotency] = job;
  const work = new WorkWatch(store, writeCount);
  const watching = { work, isTraced };
  const request = { requestId, organisation, handling, idempotency, body };
  if (type === null) {
    return answerOfInteraction(await takeInteraction(request, work, known), requestId, watching);
  }
  const taken = await takeUpload({ ...request, type, dryRun }, work, known, limits, onBodyRead);
  return answerOfUpload(taken, requestId, watching);
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
