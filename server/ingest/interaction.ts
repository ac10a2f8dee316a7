// Takes in one user interaction: read → validate → resolve references → write → the stored object.

import { dateTimeFromMs } from '@headgate/catalogue/kinds/date-time.ts';
import { occurredAt } from '@headgate/catalogue/kinds/event-timestamp.ts';
import { interaction, type ShownInteraction, storedInteraction } from '@headgate/catalogue/record-types.ts';
import { type OrganisationNumber, type Store, StoreUnavailable } from '../store/store.ts';
import { uuidV7 } from '../uuid-v7.ts';
import { checkFields, DroppedFields, type FieldProblem, type Handling, planOf } from './check-fields.ts';
import { type JsonLimits, readJson, type Unreadable } from './json.ts';
import type { KnownRecords } from './known-records.ts';
import {
  answerAgain,
  type IdempotencyKey,
  type KeyRunning,
  type KeyTaken,
  memoryOf,
  openAnswer,
  recallAnswer,
} from './memory.ts';
import { presenterOf } from './present.ts';
import { resolveReferences } from './references.ts';

export interface InteractionRequest {
  readonly requestId: string;
  readonly organisation: OrganisationNumber;
  readonly body: Uint8Array;
  readonly handling: Handling;
  readonly idempotency: IdempotencyKey | null;
}

/** What is kept under an idempotency key: the whole answer, since no tally adds to it. */
type InteractionAnswer =
  | { readonly kind: 'recorded'; readonly interaction: ShownInteraction }
  | { readonly kind: 'refused'; readonly problems: readonly FieldProblem[]; readonly requestId: string };

export type InteractionTaken =
  | (InteractionAnswer & { readonly replayed: boolean })
  | Unreadable
  | { readonly kind: 'failed'; readonly failure: string }
  | KeyTaken
  | KeyRunning;

/** A good interaction is one object of eleven keys; this leaves room for a wrong one to be told what is wrong. */
const jsonLimits: JsonLimits = {
  containers: 200_000,
  members: 20_000,
  advice: 'an interaction is one object with the fields that the docs list',
};

const plan = planOf(interaction);
const eventTimestampColumn = plan.columnOf.get('event_timestamp')!;
export const presentInteraction = presenterOf<ShownInteraction>(storedInteraction);

export async function takeInteraction(
  request: InteractionRequest,
  store: Pick<Store, 'recall' | 'writeInteraction'>,
  known: KnownRecords,
): Promise<InteractionTaken> {
  const recalled = await recallAnswer(request, request.idempotency, store);
  if (recalled.kind === 'again' || recalled.kind === 'key_taken') return replay(recalled);
  const read = readJson(request.body, jsonLimits);
  if ('unreadable' in read) return { kind: 'unreadable', message: read.unreadable };
  if (recalled.kind === 'unavailable') return { kind: 'failed', failure: recalled.reason };
  try {
    return await carryOut(request, recalled.fingerprint, read.value, store, known);
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    return { kind: 'failed', failure: error.message };
  }
}

async function carryOut(
  { requestId, organisation, handling, idempotency }: InteractionRequest,
  fingerprint: string,
  value: unknown,
  store: Pick<Store, 'recall' | 'writeInteraction'>,
  known: KnownRecords,
): Promise<InteractionTaken> {
  const nowMs = Date.now();
  const checked = checkFields(plan, value, handling === 'lenient' ? new DroppedFields() : null);
  await resolveReferences(plan, [checked], organisation, known);
  // In the order in which the catalogue adds these behind what the client sent.
  const row = [
    ...checked.row,
    uuidV7(nowMs),
    checked.problems === null ? occurredAt(checked.row[eventTimestampColumn] as string) : null,
    dateTimeFromMs(nowMs),
  ];
  const answer: InteractionAnswer =
    checked.problems === null
      ? { kind: 'recorded', interaction: presentInteraction(row) }
      : { kind: 'refused', problems: checked.problems, requestId };
  const memory = idempotency && memoryOf(idempotency, organisation, fingerprint, answer);
  if (answer.kind === 'recorded' || memory !== null) {
    const written = await store.writeInteraction({
      organisation,
      row: answer.kind === 'recorded' ? row : null,
      memory,
    });
    if (written.kind === 'already') return replay(answerAgain(written.remembered, fingerprint));
    if (written.kind === 'running') return { kind: 'key_running' };
  }
  return { ...answer, replayed: false };
}

function replay(again: ReturnType<typeof answerAgain>): InteractionTaken {
  if (again.kind === 'key_taken') return again;
  const { remembered } = again;
  return { ...openAnswer<InteractionAnswer>(remembered.answer), replayed: true };
}
