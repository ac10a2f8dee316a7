// Converts the result of ingesting a request into the HTTP response: status, headers and body.

import { type ProblemCode, problemCodes } from '@headgate/catalogue/problem-codes.ts';
import type { UploadTypeName } from '@headgate/catalogue/record-types.ts';
import type { KeyRunning, KeyTaken } from '../ingest/idempotency.ts';
import type { UnreadableBody } from '../ingest/json.ts';
import { type BatchOutcome, type BatchResult, howToSendAgain, type Outcome } from '../ingest/outcome.ts';
import type { InteractionTaken } from '../ingest/take-interaction.ts';
import type { UploadTaken } from '../ingest/take-upload.ts';
import { sentence } from '../near-name.ts';
import type { IngestSummary } from '../observe/ended-request.ts';
import { summaryOfInteraction, summaryOfUpload, type Watching } from './ingest-summary.ts';
import { type Refusal, refusalBody, refusals } from './refusals.ts';

/** A complete response. The ingest thread makes it, so that the serving thread need not serialise large bodies. */
export interface IngestResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The body. A large one is bytes, because bytes can be transferred between threads without a copy. */
  readonly json: string | Uint8Array<ArrayBuffer>;
  /** The store's error, or null if the store did not fail. It is for the log and never shown to the client. */
  readonly failure: string | null;
  /** Null if the request was refused before its content was checked. */
  readonly summary: IngestSummary | null;
}

const batchStatuses: Record<BatchResult, { readonly status: number; readonly word: string }> = {
  accepted: { status: 200, word: 'success' },
  partly_accepted: { status: 207, word: 'partial' },
  refused: { status: 400, word: 'error' },
  failed: { status: 500, word: 'error' },
};
/**
 * A longer response is sent between threads as bytes, and counts as held in memory until it is sent to the client. A
 * shorter one fits into the kernel's send buffer.
 */
const LARGE_RESPONSE_CHARACTERS = 64 * 1024;
const MIXED_STATUS = 207;
const CREATED_STATUS = 201;

export const keyTaken: Refusal = {
  refusal: 'unprocessable_content',
  message: 'This Idempotency-Key was used with another body or Prefer; use a new key for a new request.',
};

export const keyRunning: Refusal = {
  refusal: 'conflict',
  message: 'A request with this Idempotency-Key is still running; wait for its response.',
  headers: { 'Retry-After': '1' },
};

export function responseOf(
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
  failure: string | null = null,
  summary: IngestSummary | null = null,
): IngestResponse {
  const text = JSON.stringify(body);
  const json = text.length > LARGE_RESPONSE_CHARACTERS ? new TextEncoder().encode(text) : text;
  return { status, headers, json, failure, summary };
}

export function responseOfRefusal(
  refusal: Refusal,
  requestId: string,
  failure: string | null = null,
  summary: IngestSummary | null = null,
): IngestResponse {
  const { status } = refusals[refusal.refusal];
  return responseOf(status, refusalBody(refusal, requestId), refusal.headers, failure, summary);
}

export function responseOfUpload(
  taken: UploadTaken,
  requestId: string,
  watching: Watching | null = null,
): IngestResponse {
  if (taken.kind !== 'taken') return responseOfRefusal(refusalOf(taken), requestId);
  const { outcome, replayed } = taken;
  const { status, body } = renderOutcome(outcome);
  const summary = summaryOfUpload(outcome, replayed, watching);
  return responseOf(status, body, replayedHeader(replayed), outcome.failure, summary);
}

export function responseOfInteraction(
  taken: InteractionTaken,
  requestId: string,
  watching: Watching | null = null,
): IngestResponse {
  switch (taken.kind) {
    case 'unreadable':
    case 'key_taken':
    case 'key_running':
      return responseOfRefusal(refusalOf(taken), requestId);
    case 'failed':
      return responseOfRefusal(
        interactionNotStored,
        requestId,
        taken.failure,
        summaryOfInteraction(taken, watching),
      );
    case 'refused': {
      const [first] = taken.problems;
      const refusal: Refusal = {
        refusal: 'bad_request',
        message: sentence(`The interaction was not recorded: ${first!.message}`),
        details: taken.problems,
      };
      const body = refusalBody(refusal, taken.requestId);
      const summary = summaryOfInteraction(taken, watching);
      return responseOf(refusals.bad_request.status, body, replayedHeader(taken.replayed), null, summary);
    }
    case 'recorded':
      return responseOf(
        CREATED_STATUS,
        taken.interaction,
        replayedHeader(taken.replayed),
        null,
        summaryOfInteraction(taken, watching),
      );
  }
}

/** Returns the refusal for a request that was refused before its content was checked. */
function refusalOf(taken: UnreadableBody | KeyTaken | KeyRunning): Refusal {
  switch (taken.kind) {
    case 'unreadable':
      return { refusal: 'bad_request', message: taken.message };
    case 'key_taken':
      return keyTaken;
    case 'key_running':
      return keyRunning;
  }
}

const storeUnavailable: ProblemCode = 'store_unavailable';
const interactionNotStored: Refusal = {
  refusal: 'internal_error',
  message:
    'The store did not confirm the interaction; send it again as it is. With an Idempotency-Key it is recorded once.',
  details: [{ field: null, code: storeUnavailable, message: problemCodes[storeUnavailable].remedy }],
};

function replayedHeader(replayed: boolean): Readonly<Record<string, string>> {
  return replayed ? { 'Idempotency-Replayed': 'true' } : {};
}

function renderOutcome({ requestId, type, dryRun, batches: outcomes, seq }: Outcome): {
  status: number;
  body: object;
} {
  const batches = outcomes.map((batch, number) => ({
    batch: number + 1,
    status: batchStatuses[batch.result].status,
    data: {
      status: batchStatuses[batch.result].word,
      type,
      message: summaryOf(batch, type, dryRun),
      request_id: requestId,
      batch_id: batch.batchId,
      error: errorOf(batch, type),
      counts: batch.counts,
      errors: batch.problems,
      ...(batch.omittedProblems === 0 ? {} : { errors_omitted: batch.omittedProblems }),
      warnings: batch.warnings,
    },
  }));
  const [first, ...others] = batches.map((batch) => batch.status);
  const status = others.every((other) => other === first) ? first! : MIXED_STATUS;
  const head = { request_id: requestId, ...(seq === null ? {} : { seq }), type };
  return { status, body: { ...head, ...(dryRun ? { dry_run: true } : {}), batches } };
}

function summaryOf({ result, counts }: BatchOutcome, type: UploadTypeName, dryRun: boolean): string {
  const { received, created, updated, unchanged, rejected } = counts;
  const records = `${received} ${received === 1 ? 'record' : 'records'} received`;
  if (result === 'failed') return `${records}; the store did not confirm the batch. ${howToSendAgain(type)}.`;
  const done = `${created} created, ${updated} updated, ${unchanged} unchanged, ${rejected} rejected`;
  return dryRun ? `${records}; an upload would give: ${done}. Nothing was stored.` : `${records}: ${done}.`;
}

function errorOf(
  { result, counts, problems, omittedProblems }: BatchOutcome,
  type: UploadTypeName,
): string | null {
  const [first] = problems;
  if (first === undefined) return null;
  if (result === 'failed') {
    return `The store did not confirm this batch. ${howToSendAgain(type)}.`;
  }
  const byCode = new Map<string, number>();
  for (const { code } of problems) byCode.set(code, (byCode.get(code) ?? 0) + 1);
  const codes = [...byCode].map(([code, count]) => `${count} × ${code}`);
  if (omittedProblems > 0) codes.push(`${omittedProblems} more not listed`);
  return (
    `${counts.rejected} of ${counts.received} records rejected (${codes.join(', ')}). ` +
    sentence(`First: records[${first.index}]: ${first.message}`)
  );
}
