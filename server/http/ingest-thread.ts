// Decompresses, parses, checks and stores uploads and interactions, on a thread of its own so that they do not block
// the serving thread. Organisations share the thread's time fairly.

import { parentPort, workerData } from 'node:worker_threads';
import type { UploadTypeName } from '@headgate/catalogue/record-types.ts';
import { FairQueue } from '../fair-queue.ts';
import type { Handling } from '../ingest/check-fields.ts';
import type { IdempotencyKey } from '../ingest/idempotency.ts';
import { KnownRecords } from '../ingest/known-records.ts';
import { takeInteraction } from '../ingest/take-interaction.ts';
import { takeUpload, type UploadLimits } from '../ingest/take-upload.ts';
import type { ThreadLabel } from '../observe/metrics.ts';
import { WorkWatch, type WriteCount } from '../observe/work-watch.ts';
import { attachStore, type StoreHandle } from '../store/open-store.ts';
import type { OrganisationNumber } from '../store/rows.ts';
import { unpack } from './body/decompression.ts';
import type { ContentEncoding } from './body/read-body.ts';
import { isSmall, SMALL_BODY_BYTES } from './body/small-body.ts';
import {
  type IngestResponse,
  responseOfInteraction,
  responseOfRefusal,
  responseOfUpload,
} from './ingest-responses.ts';
import type { Refusal } from './refusals.ts';

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
  type: UploadTypeName | null,
  handling: Handling,
  dryRun: boolean,
  idempotency: IdempotencyKey | null,
  encoding: ContentEncoding | null,
  bodyStart: number,
  bodyBytes: number,
  keyId: string,
  receivedAtMs: number,
];

export interface IngestJobs {
  /** The jobs (`IngestJob[]`) as JSON, because a text is sent between threads in half the time that the array takes. */
  readonly jobsJson: string;
  /** The bodies of all jobs. */
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Says that a large response has been sent to its client, or never will be. */
export interface ResponseSent {
  readonly organisation: OrganisationNumber;
  readonly sentBytes: number;
}

export type IngestMessage = IngestJobs | ResponseSent;

/**
 * `response` is null if this thread is for small requests and the body was too large for it. `bug` is the stack of the
 * error if the job threw one, which no input should cause.
 */
export type JobResult =
  | readonly [id: number, response: IngestResponse | null]
  | readonly [id: number, response: null, bug: string];

interface WaitingJob {
  readonly job: IngestJob;
  /** The body as it was received, before decompression. */
  readonly packed: Uint8Array<ArrayBuffer>;
}

/**
 * While an organisation's uploads in progress have this many bytes after decompression, its further uploads wait. They
 * wait unparsed, because a parsed upload takes several times its bytes in memory. The limit is high enough for the
 * store to commit several uploads together.
 */
const ORGANISATION_WORKED_ON_BYTES = 8 * 1024 * 1024;
/**
 * While this many bytes of an organisation's large responses have not been sent, its further uploads wait. Otherwise
 * clients that read slowly would fill the memory with responses.
 */
const ORGANISATION_UNSENT_BYTES = 8 * 1024 * 1024;
/**
 * The most requests that are started in one turn. Everything else that the thread does, such as handing rows to the
 * store, happens between turns, so a turn must be short. It starts one large request, or small requests for at most
 * `TURN_MS`.
 */
const MOST_STARTED_PER_TURN: Readonly<Record<ThreadLabel, number>> = { small: 32, large: 1 };
const TURN_MS = 5;
/**
 * The work for a request after it has called the store cannot be measured. Its time is estimated from the bytes of the
 * body and the response, at this rate.
 */
const BYTES_PER_MS = 50_000;

/**
 * From these sizes on, a compressed body is decompressed in the background. A smaller one takes at most 0.2 s. Brotli
 * can describe work of 3 µs in a single byte.
 */
const BACKGROUND_BYTES: Readonly<Record<ContentEncoding, number>> = {
  gzip: 1024 * 1024,
  br: 64 * 1024,
  zstd: 1024 * 1024,
};

const { label, store: handle, limits, maxBodyBytes, writeCount, isTraced } = workerData as IngestThreadData;
const port = parentPort!;
const store = await attachStore(handle);
const known = new KnownRecords(store);
/**
 * The limit for the uploads in progress of all organisations together. It is more than one organisation can reach, so
 * that an organisation whose writes hang leaves room for the others.
 */
const ALL_WORKED_ON_BYTES = maxBodyBytes + 2 * ORGANISATION_WORKED_ON_BYTES;
/**
 * An upload of up to this size does not wait for the uploads of other organisations, which may be in the store for
 * seconds.
 */
const MODEST_BODY_BYTES = 1024 * 1024;
const waiting = new FairQueue<WaitingJob>();
const workedOnBytes = new Map<OrganisationNumber, number>();
const unsentBytes = new Map<OrganisationNumber, number>();
let allWorkedOnBytes = 0;
let isTurnDue = false;
let turnStartedAtMs = 0;
/** The organisation whose job was started last, and when. Null if no job has started since time was last charged. */
let atWork: { readonly organisation: OrganisationNumber; readonly startedAtMs: number } | null = null;
/**
 * After a long job, its organisation pauses for as long as the job took, if another organisation has a job at work. So
 * the other one waits for one long job, and not for a second one before its response.
 */
const LONG_JOB_MS = 20;
let pause: { readonly organisation: OrganisationNumber; readonly endsAtMs: number } | null = null;
let finished: JobResult[] = [];

port.on('message', (message: IngestMessage) => {
  if ('jobsJson' in message) takeJobs(message);
  else addTo(unsentBytes, message.organisation, -message.sentBytes);
  takeTurn();
});

function takeJobs({ jobsJson, bytes }: IngestJobs): void {
  for (const job of JSON.parse(jobsJson) as IngestJob[]) {
    const [, , organisation, , , , , , bodyStart, bodyBytes] = job;
    waiting.push(organisation, { job, packed: bytes.subarray(bodyStart, bodyStart + bodyBytes) });
  }
}

/**
 * Schedules a turn, in which each job starts in an immediate of its own. When the next immediate runs, the job has done
 * all its work up to the point where it waits for the store. So the time between two immediates is the time for this
 * work.
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
  // The results of finished jobs must not wait for the jobs that start now.
  report();
  turnStartedAtMs = performance.now();
}

function startNext(): void {
  const nowMs = chargeForTime();
  if (nowMs - turnStartedAtMs > TURN_MS) return;
  const next = waiting.shift(hasRoom);
  if (next === undefined) return;
  atWork = { organisation: next.job[2], startedAtMs: nowMs };
  start(next);
}

function endTurn(): void {
  chargeForTime();
  isTurnDue = false;
  if (waiting.peek(hasRoom) === undefined) return;
  // The next turn is scheduled one event-loop turn later, so that the jobs that were started reach the store first.
  setImmediate(takeTurn);
}

/** Charges the time since the last job started to that job's organisation, and returns the current time. */
function chargeForTime(): number {
  const nowMs = performance.now();
  if (atWork !== null) {
    const { organisation, startedAtMs } = atWork;
    const tookMs = nowMs - startedAtMs;
    waiting.charge(organisation, tookMs);
    if (tookMs > LONG_JOB_MS) {
      pause = { organisation, endsAtMs: nowMs + tookMs };
      setTimeout(takeTurn, tookMs);
    }
  }
  atWork = null;
  return nowMs;
}

function hasRoom(organisation: OrganisationNumber, { job, packed }: WaitingJob): boolean {
  const [, , , , , , , encoding] = job;
  const bytesOfOne = workedOnBytes.get(organisation) ?? 0;
  // The size of a compressed body is not known yet.
  const isModest = bytesOfOne === 0 && encoding === null && packed.byteLength <= MODEST_BODY_BYTES;
  return (
    (isModest || allWorkedOnBytes < ALL_WORKED_ON_BYTES) &&
    bytesOfOne < ORGANISATION_WORKED_ON_BYTES &&
    (unsentBytes.get(organisation) ?? 0) < ORGANISATION_UNSENT_BYTES &&
    !isPausing(organisation)
  );
}

function isPausing(organisation: OrganisationNumber): boolean {
  const isOtherAtWork = workedOnBytes.size > (workedOnBytes.has(organisation) ? 1 : 0);
  return pause?.organisation === organisation && isOtherAtWork && performance.now() < pause.endsAtMs;
}

function holdBytes(organisation: OrganisationNumber, bytes: number): void {
  allWorkedOnBytes += bytes;
  addTo(workedOnBytes, organisation, bytes);
}

function addTo(sums: Map<OrganisationNumber, number>, organisation: OrganisationNumber, bytes: number): void {
  const sum = (sums.get(organisation) ?? 0) + bytes;
  if (sum === 0) sums.delete(organisation);
  else sums.set(organisation, sum);
}

function start(next: WaitingJob): void {
  void resultOf(next)
    .catch((error: unknown): JobResult => [next.job[0], null, stackOf(error)])
    .then((result) => {
      finish(result);
      takeTurn();
    });
}

async function resultOf({ job, packed }: WaitingJob): Promise<JobResult> {
  const [id, requestId, organisation, , , , , encoding] = job;
  const body = encoding === null ? packed : await unpacked(packed, encoding, organisation);
  if (body === null) return [id, null];
  if ('refusal' in body) {
    giveBack(packed);
    return [id, responseOfRefusal(body, requestId)];
  }
  const { byteLength } = body;
  const giveBackBody = (): void => {
    giveBack(packed);
    giveBack(body);
  };
  waiting.charge(organisation, byteLength / BYTES_PER_MS);
  holdBytes(organisation, byteLength);
  try {
    const made = await respondTo(job, body, giveBackBody);
    waiting.charge(organisation, made.json.length / BYTES_PER_MS);
    if (made.json instanceof Uint8Array) addTo(unsentBytes, organisation, made.json.byteLength);
    return [id, made];
  } finally {
    holdBytes(organisation, -byteLength);
    giveBackBody();
  }
}

/** Resolves to the decompressed body, or to null if this thread is for small requests and the body is not small. */
async function unpacked(
  bytes: Uint8Array<ArrayBuffer>,
  encoding: ContentEncoding,
  organisation: OrganisationNumber,
): Promise<Uint8Array<ArrayBuffer> | Refusal | null> {
  if (label === 'small') {
    const body = await unpack({ bytes, encoding }, SMALL_BODY_BYTES, false);
    if ('refusal' in body) return body.refusal === 'content_too_large' ? null : body;
    return isSmall(body) ? body : null;
  }
  if (bytes.byteLength < BACKGROUND_BYTES[encoding]) return unpack({ bytes, encoding }, maxBodyBytes, false);
  waiting.charge(organisation, bytes.byteLength / BYTES_PER_MS);
  // The size after decompression is not known yet, so the largest allowed size counts.
  holdBytes(organisation, maxBodyBytes);
  try {
    return await unpack({ bytes, encoding }, maxBodyBytes, true);
  } finally {
    holdBytes(organisation, -maxBodyBytes);
    // The job goes on outside of a turn, so its time is charged here.
    atWork = { organisation, startedAtMs: chargeForTime() };
    setImmediate(chargeForTime);
  }
}

/** Frees the memory of a body at once, if the body has its own buffer. The garbage collector would take longer. */
function giveBack({ buffer, byteLength }: Uint8Array<ArrayBuffer>): void {
  if (buffer.byteLength === byteLength && !buffer.detached) buffer.transfer(0);
}

/** Collects the results of jobs that were committed together, so that they are reported in one message. */
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

async function respondTo(job: IngestJob, body: Uint8Array, onBodyRead: () => void): Promise<IngestResponse> {
  const [, requestId, organisation, type, handling, dryRun, idempotency, , , bytes, keyId, receivedAtMs] =
    job;
  const work = new WorkWatch(store, writeCount);
  const watching = { work, isTraced };
  const origin = { requestId, keyId, receivedAtMs, bytes };
  const request = { requestId, organisation, handling, idempotency, origin, body };
  if (type === null) {
    return responseOfInteraction(await takeInteraction(request, work, known), requestId, watching);
  }
  const taken = await takeUpload({ ...request, type, dryRun }, work, known, limits, onBodyRead);
  return responseOfUpload(taken, requestId, watching);
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
