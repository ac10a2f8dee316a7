// The thread on which interactions are parsed, checked and answered, apart from uploads, so that one interaction
// never waits for the parsing of thousands of records.

import { parentPort, workerData } from 'node:worker_threads';
import type { Handling } from '../ingest/check-fields.ts';
import { takeInteraction } from '../ingest/interaction.ts';
import { KnownRecords } from '../ingest/known-records.ts';
import type { IdempotencyKey } from '../ingest/memory.ts';
import { WorkWatch, type WriteCount } from '../observe/work-watch.ts';
import { attachStore, type StoreHandle } from '../store/open-store.ts';
import type { OrganisationNumber } from '../store/store.ts';
import { type Answer, answerOfInteraction } from './answers.ts';
import { bugOf, type JobResult } from './job-thread.ts';

export interface InteractionThreadData {
  readonly store: StoreHandle;
  readonly writeCount: WriteCount;
  readonly isTraced: boolean;
}

export type InteractionJob = readonly [
  id: number,
  requestId: string,
  organisation: OrganisationNumber,
  handling: Handling,
  idempotency: IdempotencyKey | null,
  bodyStart: number,
  bodyBytes: number,
];

export interface InteractionMessage {
  /** InteractionJob[]; as text it crosses threads in half the time. */
  readonly jobsJson: string;
  /** Their bodies. */
  readonly bytes: Uint8Array<ArrayBuffer>;
}

const { store: handle, writeCount, isTraced } = workerData as InteractionThreadData;
const port = parentPort!;
const store = await attachStore(handle);
const known = new KnownRecords(store);
let finished: JobResult<Answer>[] = [];

port.on('message', ({ jobsJson, bytes }: InteractionMessage) => {
  for (const job of JSON.parse(jobsJson) as InteractionJob[]) void finish(job, bytes);
});

async function finish(job: InteractionJob, bytes: Uint8Array): Promise<void> {
  const [id, requestId, organisation, handling, idempotency, bodyStart, bodyBytes] = job;
  const body = bytes.subarray(bodyStart, bodyStart + bodyBytes);
  const work = new WorkWatch(store, writeCount);
  try {
    const taken = await takeInteraction(
      { requestId, organisation, handling, idempotency, body },
      work,
      known,
    );
    tell([id, answerOfInteraction(taken, requestId, { work, isTraced })]);
  } catch (error) {
    tell([id, null, bugOf(error)]);
  }
}

/** What was committed together is told together. */
function tell(result: JobResult<Answer>): void {
  if (finished.push(result) > 1) return;
  setImmediate(() => {
    port.postMessage(finished);
    finished = [];
  });
}
