// A thread on which uploads and interactions are unpacked, parsed, checked and answered, so that the thread that serves
// connections only ever moves bytes. Organisations take turns by the unpacked size of what they send and are answered.

import { parentPort, workerData } from 'node:worker_threads';
import type { RecordTypeName } from '@headgate/catalogue/record-types.ts';
import { FairQueue } from '../fair-queue.ts';
import type { Handling } from '../ingest/check-fields.ts';
import { takeInteraction } from '../ingest/interaction.ts';
import { KnownRecords } from '../ingest/known-records.ts';
import type { IdempotencyKey } from '../ingest/memory.ts';
import { takeUpload, type UploadLimits } from '../ingest/upload.ts';
import { WorkWatch, type WriteCount } from '../observe/work-watch.ts';
import { attachStore, type StoreHandle } from '../store/open-store.ts';
import type { OrganisationNumber } from '../store/store.ts';
import { type Answer, answerOfInteraction, answerOfRefusal, answerOfUpload } from './answers.ts';
import { bugOf, type JobResult } from './job-thread.ts';
import type { ContentEncoding } from './read-body.ts';
import { unpack } from './unpack.ts';

export interface IngestThreadData {
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
 * In one turn of the event loop this much is started: many small bodies, or one of any size. Everything else that the
 * thread does, such as handing rows to the store, happens between turns.
 */
const STARTED_PER_TURN_BYTES = 16 * 1024;
/** What a job costs beside its bytes. */
const JOB_BYTES = 256;

const { store: handle, limits, maxBodyBytes, writeCount, isTraced } = workerData as IngestThreadData;
const port = parentPort!;
const store = await attachStore(handle);
const known = new KnownRecords(store);
/** More than one organisation can hold: one whose store does not answer leaves room for the others. */
const ALL_WORKED_ON_BYTES = maxBodyBytes + 2 * ORGANISATION_WORKED_ON_BYTES;
const waiting = new FairQueue<WaitingJob>();
const workedOnBytes = new Map<OrganisationNumber, number>();
let allWorkedOnBytes = 0;
let isTurnDue = false;
let finished: JobResult<Answer>[] = [];

port.on('message', ({ jobsJson, bytes }: IngestMessage) => {
  for (const job of JSON.parse(jobsJson) as IngestJob[]) {
    const [, , organisation, , , , , , bodyStart, bodyBytes] = job;
    waiting.push(organisation, { job, packed: bytes.subarray(bodyStart, bodyStart + bodyBytes) });
  }
  takeTurn();
});

function takeTurn(): void {
  if (isTurnDue || waiting.size === 0) return;
  isTurnDue = true;
  setImmediate(startJobs);
}

function startJobs(): void {
  isTurnDue = false;
  // Who is done must not wait for who begins.
  report();
  let startedBytes = 0;
  while (startedBytes < STARTED_PER_TURN_BYTES && allWorkedOnBytes < ALL_WORKED_ON_BYTES) {
    const next = waiting.shift(hasRoom);
    if (next === undefined) return;
    startedBytes += start(next);
  }
  // The next turn is asked for in a turn of its own, so that what was started reaches the store before it.
  if (allWorkedOnBytes < ALL_WORKED_ON_BYTES) setImmediate(takeTurn);
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

/** Returns what it cost, in bytes. */
function start({ job, packed }: WaitingJob): number {
  const [id, requestId, organisation, , , , , encoding] = job;
  const body = unpack({ bytes: packed, encoding }, maxBodyBytes);
  if ('refusal' in body) {
    // A body that is too large was unpacked up to the limit.
    const unpackedBytes = body.refusal === 'content_too_large' ? maxBodyBytes : packed.byteLength;
    waiting.charge(organisation, unpackedBytes + JOB_BYTES);
    giveBack(packed);
    finish([id, answerOfRefusal(body, requestId)]);
    return unpackedBytes + JOB_BYTES;
  }
  const { byteLength } = body;
  waiting.charge(organisation, byteLength + JOB_BYTES);
  holdBytes(organisation, byteLength);
  const giveBackBody = (): void => {
    giveBack(packed);
    giveBack(body);
  };
  void answer(job, body, giveBackBody)
    .then(
      (made): JobResult<Answer> => {
        waiting.charge(organisation, made.json.length);
        return [id, made];
      },
      (error: unknown): JobResult<Answer> => [id, null, bugOf(error)],
    )
    .then((result) => {
      holdBytes(organisation, -byteLength);
      giveBackBody();
      finish(result);
      takeTurn();
    });
  return byteLength + JOB_BYTES;
}

/** Frees a body that has a buffer to itself now instead of when the collector comes. */
function giveBack({ buffer, byteLength }: Uint8Array<ArrayBuffer>): void {
  if (buffer.byteLength === byteLength && !buffer.detached) buffer.transfer(0);
}

/** What was committed together is reported together. */
function finish(result: JobResult<Answer>): void {
  if (finished.push(result) === 1) setImmediate(report);
}

function report(): void {
  if (finished.length === 0) return;
  port.postMessage(finished, buffersOf(finished));
  finished = [];
}

function buffersOf(results: readonly JobResult<Answer>[]): ArrayBuffer[] {
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
