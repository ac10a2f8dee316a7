// The thread on which uploads are unpacked, parsed, checked and answered, so that the thread that serves
// connections only ever moves bytes.

import { parentPort, workerData } from 'node:worker_threads';
import { type InteractionRequest, takeInteraction } from '../ingest/interaction.ts';
import { KnownRecords } from '../ingest/known-records.ts';
import { takeUpload, type UploadLimits, type UploadRequest } from '../ingest/upload.ts';
import { WorkWatch, type WriteCount } from '../observe/work-watch.ts';
import { attachStore, type StoreHandle } from '../store/open-store.ts';
import { type Answer, answerOfInteraction, answerOfRefusal, answerOfUpload } from './answers.ts';
import { bugOf, type JobResult } from './job-thread.ts';
import type { Body } from './read-body.ts';
import type { Refusal } from './refusals.ts';
import { unpack } from './unpack.ts';

export interface IngestThreadData {
  readonly store: StoreHandle;
  readonly limits: UploadLimits;
  readonly maxBodyBytes: number;
  readonly writeCount: WriteCount;
  readonly isTraced: boolean;
}

export type Work =
  | { readonly kind: 'upload'; readonly request: Omit<UploadRequest, 'body'> }
  | { readonly kind: 'interaction'; readonly request: Omit<InteractionRequest, 'body'> };

export interface IngestJob {
  readonly id: number;
  readonly work: Work;
  readonly body: Body;
}

/**
 * Parsed uploads take several times the room of their unpacked bytes, so only so many of these are worked on at
 * once; the rest waits as it came. Enough for the store to find several uploads waiting and commit them together.
 */
const WORKED_ON_LIMIT_BYTES = 8 * 1024 * 1024;

const { store: handle, limits, maxBodyBytes, writeCount, isTraced } = workerData as IngestThreadData;
const port = parentPort!;
const store = await attachStore(handle);
const known = new KnownRecords(store);
const waiting: IngestJob[] = [];
let workedOnBytes = 0;

port.on('message', (job: IngestJob) => {
  waiting.push(job);
  startWaiting();
});

function startWaiting(): void {
  while (waiting.length > 0 && workedOnBytes < WORKED_ON_LIMIT_BYTES) {
    void finish(waiting.shift()!).then(startWaiting);
  }
}

/** Has unpacked the body, and counted it, by the time that it first waits. */
async function finish({ id, work, body: packed }: IngestJob): Promise<void> {
  let heldBytes = 0;
  let result: JobResult<Answer>;
  try {
    const body = unpack(packed, maxBodyBytes);
    heldBytes = 'refusal' in body ? 0 : body.byteLength;
    workedOnBytes += heldBytes;
    result = [id, await answer(work, body, () => giveBack(packed))];
  } catch (error) {
    result = [id, null, bugOf(error)];
  }
  workedOnBytes -= heldBytes;
  giveBack(packed);
  port.postMessage([result]);
}

/** Now instead of when the collector comes. */
function giveBack({ bytes }: Body): void {
  if (!bytes.buffer.detached) bytes.buffer.transfer(0);
}

async function answer(work: Work, body: Uint8Array | Refusal, onBodyRead: () => void): Promise<Answer> {
  const { requestId } = work.request;
  if ('refusal' in body) return answerOfRefusal(body, requestId);
  const watch = new WorkWatch(store, writeCount);
  const watching = { work: watch, isTraced };
  return work.kind === 'upload'
    ? answerOfUpload(
        await takeUpload({ ...work.request, body }, watch, known, limits, onBodyRead),
        requestId,
        watching,
      )
    : answerOfInteraction(
        await takeInteraction({ ...work.request, body }, watch, known),
        requestId,
        watching,
      );
}
