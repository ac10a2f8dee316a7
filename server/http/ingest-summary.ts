// Summarises the result of an upload or interaction in numbers, for metrics, the log and traces.

import type { Outcome } from '../ingest/outcome.ts';
import type { InteractionTaken } from '../ingest/take-interaction.ts';
import type {
  IngestSummary,
  InteractionOutcome,
  RecordCounts,
  UploadOutcome,
} from '../observe/ended-request.ts';
import type { WorkWatch } from '../observe/work-watch.ts';

/** The measurements of one request's work on the ingest thread. */
export interface Watching {
  readonly work: WorkWatch;
  /** True if the summary includes the start and end of each step. */
  readonly isTraced: boolean;
}

type Codes = NonNullable<IngestSummary['codes']>;
type DecidedInteraction = Extract<InteractionTaken, { kind: 'recorded' | 'refused' | 'failed' }>;

export function summaryOfUpload(
  outcome: Outcome,
  replayed: boolean,
  watching: Watching | null,
): IngestSummary | null {
  if (watching === null) return null;
  const counts = { received: 0, created: 0, updated: 0, unchanged: 0, rejected: 0 };
  for (const batch of outcome.batches) {
    for (const name of Object.keys(counts) as (keyof RecordCounts)[]) counts[name] += batch.counts[name];
  }
  const codes = codesOf(outcome.batches.flatMap(({ problems }) => problems));
  return { ...factsOf(uploadOutcome(outcome, replayed), codes, watching), counts };
}

export function summaryOfInteraction(
  taken: DecidedInteraction,
  watching: Watching | null,
): IngestSummary | null {
  if (watching === null) return null;
  const replayed = taken.kind !== 'failed' && taken.replayed;
  const codes = codesOf(taken.kind === 'refused' ? taken.problems : []);
  return factsOf(replayed ? 'replayed' : taken.kind, codes, watching);
}

function factsOf(
  outcome: UploadOutcome | InteractionOutcome,
  codes: Codes | null,
  { work, isTraced }: Watching,
): IngestSummary {
  const isCommit = outcome !== 'replayed' && outcome !== 'dry_run';
  return {
    outcome,
    writeMs: isCommit ? work.writeMs() : null,
    ...(codes === null ? {} : { codes }),
    ...(isTraced ? { times: work.times() } : {}),
  };
}

function uploadOutcome({ dryRun, batches }: Outcome, replayed: boolean): UploadOutcome {
  if (replayed) return 'replayed';
  if (dryRun) return 'dry_run';
  const results = new Set(batches.map(({ result }) => result));
  if (results.has('failed')) return 'failed';
  const [only] = results;
  return results.size === 1 ? only! : 'partly_accepted';
}

function codesOf(problems: readonly { readonly code: keyof Codes }[]): Codes | null {
  if (problems.length === 0) return null;
  const codes: Partial<Record<keyof Codes, number>> = {};
  for (const { code } of problems) codes[code] = (codes[code] ?? 0) + 1;
  return codes;
}
