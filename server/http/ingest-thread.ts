// The thread on which uploads are unpacked, parsed, checked and answered, so that the thread that serves
// connections only ever moves bytes.

import { parentPort, workerData } from 'node:worker_threads';
import { type InteractionRequest, takeInteraction } from '../ingest/interaction.ts';
import { KnownRecords } from '../ingest/known-records.ts';
import { takeUpload, type UploadLimits, type UploadRequest } from '../ingest/upload.ts';
import { attachStore, type StoreHandle } from '../store/open-store.ts';
import { type Answer, answerOfInteraction, answerOfRefusal, answerOfUpload } from './answers.ts';
import type { Body } from './read-body.ts';
import type { Refusal } from './refusals.ts';
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
 * Parsed uploads take several times the room of their unpacked bytes, so only so many of these are worked on at
 * once; the rest waits as it came. Enough for the store to find several uploads waiting and commit them together.
 */
const WORKED_ON_LIMIT_BYTES = 24 * 1024 * 1024;

const { store: handle, limits, maxBodyBytes } = workerData as IngestThreadData;
const port = parentPort!;
const store = await attachStore(handle);
const known = new KnownRecords(store);
const waiting: Job[] = [];
let workedOnBytes = 0;

port.on('message', (job: Job) => {
  waiting.push(job);
  startWaiting();
});

function startWaiting(): void {
  while (waiting.length > 0 && workedOnBytes < WORKED_ON_LIMIT_BYTES) {
    void finish(waiting.shift()!).then(startWaiting);
  }
}

/** Has unpacked the body, and counted it, by the time that it first waits. */
async function finish({ id, work, body: packed }: Job): Promise<void> {
  let done: JobDone;
  let heldBytes = 0;
  try {
    const body = unpack(packed, maxBodyBytes);
    heldBytes = 'refusal' in body ? 0 : body.byteLength;
    workedOnBytes += heldBytes;
    done = { id, answer: await answer(work, body) };
  } catch (error) {
    done = { id, bug: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
  workedOnBytes -= heldBytes;
  port.postMessage(done);
}

async function answer(work: Work, body: Uint8Array | Refusal): Promise<Answer> {
  const { requestId } = work.request;
  if ('refusal' in body) return answerOfRefusal(body, requestId);
  return work.kind === 'upload'
    ? answerOfUpload(await takeUpload({ ...work.request, body }, store, known, limits), requestId)
    : answerOfInteraction(await takeInteraction({ ...work.request, body }, store, known), requestId);
}
