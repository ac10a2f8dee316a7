// The thread on which uploads are unpacked, parsed, checked and answered, so that the thread that serves
// connections only ever moves bytes.

import { parentPort, workerData } from 'node:worker_threads';
import { type InteractionRequest, takeInteraction } from '../ingest/interaction.ts';
import { KnownRecords } from '../ingest/known-records.ts';
import { takeUpload, type UploadLimits, type UploadRequest } from '../ingest/upload.ts';
import { attachStore, type StoreHandle } from '../store/open-store.ts';
import { type Answer, answerOfInteraction, answerOfRefusal, answerOfUpload } from './answers.ts';
import type { Body } from './read-body.ts';
import { unpack } from './unpack.ts';

export interface IngestThreadData {
  readonly store: StoreHandle;
  readonly limits: UploadLimits;
  readonly maxBodyBytes: number;
}

export type Work =
  | { readonly kind: 'upload'; readonly request: Omit<UploadRequest, 'body'> }
  | { readonly kind: 'interaction'; readonly request: Omit<InteractionRequest, 'body'> };

export interface Job {
  readonly id: number;
  readonly work: Work;
  readonly body: Body;
}

/** `bug`: the work threw, which nothing a client sends should make it do. */
export type JobDone = { readonly id: number } & ({ readonly answer: Answer } | { readonly bug: string });

/**
 * Parsed uploads take several times the room of their bytes, so only so many bytes are worked on at once;
 * the rest waits as bytes. Enough for the store to find several uploads waiting and commit them together.
 */
const WORKED_ON_LIMIT_BYTES = 24 * 1024 * 1024;

const { store: handle, limits, maxBodyBytes } = workerData as IngestThreadData;
const port = parentPort!;
const store = attachStore(handle);
const known = new KnownRecords(store);
const waiting: Job[] = [];
let workedOnBytes = 0;

port.on('message', (job: Job) => {
  waiting.push(job);
  startWaiting();
});

function startWaiting(): void {
  while (waiting.length > 0 && workedOnBytes < WORKED_ON_LIMIT_BYTES) {
    const job = waiting.shift()!;
    const { byteLength } = job.body.bytes;
    workedOnBytes += byteLength;
    void finish(job).then(() => {
      workedOnBytes -= byteLength;
      startWaiting();
    });
  }
}

async function finish({ id, work, body }: Job): Promise<void> {
  let done: JobDone;
  try {
    done = { id, answer: await answer(work, body) };
  } catch (error) {
    done = { id, bug: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
  port.postMessage(done);
}

async function answer(work: Work, packed: Body): Promise<Answer> {
  const { requestId } = work.request;
  const body = unpack(packed, maxBodyBytes);
  if ('refusal' in body) return answerOfRefusal(body, requestId);
  return work.kind === 'upload'
    ? answerOfUpload(await takeUpload({ ...work.request, body }, store, known, limits), requestId)
    : answerOfInteraction(await takeInteraction({ ...work.request, body }, store, known), requestId);
}
