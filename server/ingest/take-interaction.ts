// Ingests one user interaction: parses and validates it, resolves its references, stores it and returns the stored
// object.

import { dateTimeFromMs } from '@headgate/catalogue/kinds/date-time.ts';
import { occurredAt } from '@headgate/catalogue/kinds/event-timestamp.ts';
import type { ColumnValue } from '@headgate/catalogue/kinds/kind.ts';
import { presentInteraction } from '@headgate/catalogue/presentation.ts';
import {
  interaction,
  type ShownInteraction,
  uploadedWithInteraction,
} from '@headgate/catalogue/record-types.ts';
import { Failure } from '../failure.ts';
import type { EntryOrigin } from '../store/ledger.ts';
import type { OrganisationNumber } from '../store/rows.ts';
import { type Store, StoreUnavailable } from '../store/store.ts';
import { uuidV7 } from '../uuid-v7.ts';
import { checkFields, DroppedFields, type FieldProblem, type Handling, planOf } from './check-fields.ts';
import {
  findEarlierResponse,
  type IdempotencyKey,
  idempotencyRecordOf,
  type KeyRunning,
  type KeyTaken,
  matchEarlierResponse,
  unpackResponse,
} from './idempotency.ts';
import { type JsonLimits, readJson, type UnreadableBody } from './json.ts';
import type { KnownRecords } from './known-records.ts';
import { resolveReferences } from './references.ts';

export interface InteractionRequest {
  readonly requestId: string;
  readonly organisation: OrganisationNumber;
  readonly body: Uint8Array;
  readonly handling: Handling;
  readonly idempotency: IdempotencyKey | null;
  readonly origin: EntryOrigin;
}

/**
 * The result that is stored under an idempotency key. It is complete. The stored result of an upload is not, because
 * the store adds the tallies.
 */
type InteractionResult =
  | { readonly kind: 'recorded'; readonly interaction: ShownInteraction }
  | { readonly kind: 'refused'; readonly problems: readonly FieldProblem[]; readonly requestId: string };

export type InteractionTaken =
  | (InteractionResult & { readonly replayed: boolean })
  | UnreadableBody
  | { readonly kind: 'failed'; readonly failure: string }
  | KeyTaken
  | KeyRunning;

/** A valid interaction is one object with eleven keys. The limits leave room to report the problems of others. */
const jsonLimits: JsonLimits = {
  containers: 200_000,
  members: 20_000,
  keys: 20_000,
  advice: 'an interaction is one object with the fields that the docs list',
};

const plan = planOf(interaction, uploadedWithInteraction);
const eventTimestampColumn = plan.columnOf.get('event_timestamp')!;

/**
 * Completes the values of a valid interaction in place, so that they are in the order of the catalogue's
 * `storedInteraction`. An interaction in an upload may already have an id and a time of recording.
 */
export function completeInteraction(row: ColumnValue[], nowMs: number): void {
  const [id, created] = row.splice(plan.fields.length);
  row.push(
    id ?? uuidV7(nowMs),
    occurredAt(row[eventTimestampColumn] as string),
    created ?? dateTimeFromMs(nowMs),
  );
}

export async function takeInteraction(
  request: InteractionRequest,
  store: Pick<Store, 'storedResponse' | 'writeInteraction'>,
  known: KnownRecords,
): Promise<InteractionTaken> {
  const earlier = await findEarlierResponse(request, request.idempotency, store);
  if (earlier.kind === 'replay' || earlier.kind === 'key_taken') return replay(earlier);
  const read = readJson(request.body, jsonLimits);
  if (read instanceof Failure) return { kind: 'unreadable', message: read.reason };
  if (earlier.kind === 'unavailable') return { kind: 'failed', failure: earlier.reason };
  try {
    return await carryOut(request, earlier.fingerprint, read.value, store, known);
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    return { kind: 'failed', failure: error.message };
  }
}

async function carryOut(
  { requestId, organisation, handling, idempotency, origin }: InteractionRequest,
  fingerprint: string,
  value: unknown,
  store: Pick<Store, 'storedResponse' | 'writeInteraction'>,
  known: KnownRecords,
): Promise<InteractionTaken> {
  const checked = checkFields(plan, value, handling === 'lenient' ? new DroppedFields() : null);
  const { row } = checked;
  await resolveReferences(plan, [checked], organisation, known);
  if (checked.problems === null) completeInteraction(row, Date.now());
  const result: InteractionResult =
    checked.problems === null
      ? { kind: 'recorded', interaction: presentInteraction(row) }
      : { kind: 'refused', problems: checked.problems, requestId };
  const idempotencyRecord =
    idempotency && (await idempotencyRecordOf(idempotency, organisation, fingerprint, result));
  if (result.kind === 'recorded' || idempotencyRecord !== null) {
    const written = await store.writeInteraction({
      organisation,
      row: result.kind === 'recorded' ? row : null,
      idempotencyRecord,
      entry: origin,
    });
    if (written.kind === 'replay') return replay(matchEarlierResponse(written.stored, fingerprint));
    if (written.kind === 'running') return { kind: 'key_running' };
  }
  return { ...result, replayed: false };
}

function replay(again: ReturnType<typeof matchEarlierResponse>): InteractionTaken {
  if (again.kind === 'key_taken') return again;
  const { stored } = again;
  return { ...unpackResponse<InteractionResult>(stored.response), replayed: true };
}
