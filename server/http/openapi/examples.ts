// Makes the example responses to the example records, with the same code that makes real responses.

import { occurredAt } from '@headgate/catalogue/kinds/event-timestamp.ts';
import {
  interaction,
  type RecordTypeName,
  recordTypes,
  type ShownInteraction,
  type ShownRecord,
} from '@headgate/catalogue/record-types.ts';
import { checkFields, type FieldProblem, planOf } from '../../ingest/check-fields.ts';
import { outcomeOf, type Problem, problem } from '../../ingest/outcome.ts';
import { presenterOf } from '../../ingest/presentation.ts';
import { unknownReference } from '../../ingest/references.ts';
import { presentInteraction } from '../../ingest/take-interaction.ts';
import type { Tally } from '../../store/rows.ts';
import { type Answer, answerOfInteraction, answerOfUpload } from '../ingest-responses.ts';
import { exampleIds, exampleInteraction, exampleRecordedAt, exampleRecords } from './example-records.ts';

/** The body of a request and the response to it. */
export interface Exchange {
  readonly summary: string;
  readonly body: unknown;
  readonly status: number;
  readonly answer: unknown;
}

export type Exchanges = Readonly<Record<string, Exchange>>;

/** A text in the form of a date-time whose date does not exist. */
const IMPOSSIBLE_DATE_TIME = '2026-02-30T09:00:00Z';
const NOTHING: Tally = { created: 0, updated: 0, unchanged: 0 };

export function shownExample<T extends RecordTypeName>(type: T): ShownRecord<T> {
  const { fields } = recordTypes[type];
  const { row } = checkFields(planOf(fields), exampleRecords[type], null);
  return presenterOf<ShownRecord<T>>(fields)(row);
}

export const shownInteractionExample: ShownInteraction = presentInteraction([
  ...checkFields(planOf(interaction), exampleInteraction, null).row,
  exampleIds.interaction,
  occurredAt(String(exampleInteraction.event_timestamp)),
  exampleRecordedAt,
]);

/**
 * Returns three uploads with their responses. If they are sent in this order, the first is accepted, the second partly
 * accepted and the third refused.
 */
export function uploadExchanges(type: RecordTypeName): Exchanges {
  const good = exampleRecords[type];
  const { record: bad, problems } = flawedExample(type);
  return {
    accepted: uploadExchange(type, 'Every record is accepted', [good], [], { ...NOTHING, created: 1 }),
    partly_accepted: uploadExchange(
      type,
      'The first is there already, the second is rejected',
      [good, bad],
      problems(1),
      { ...NOTHING, unchanged: 1 },
    ),
    refused: uploadExchange(type, 'Every record is rejected', [bad], problems(0), NOTHING),
  };
}

function uploadExchange(
  type: RecordTypeName,
  summary: string,
  records: readonly unknown[],
  problems: readonly Problem[],
  tally: Tally,
): Exchange {
  const rejected = new Set(problems.map(({ index }) => index)).size;
  const received = records.length;
  const checked = { received, rejected, superseded: 0, problems, omittedProblems: 0, warnings: [] };
  const batch = { batchId: exampleIds.batch, ...checked };
  const upload = { requestId: exampleIds.request, type, dryRun: false, batches: [batch] };
  const outcome = outcomeOf(upload, [tally]);
  const answer = answerOfUpload({ kind: 'taken', outcome, replayed: false }, exampleIds.request);
  return { summary, body: { records }, ...readAnswer(answer) };
}

/**
 * Returns a record with a typical mistake: a reference to a record that does not exist. If the type has no references,
 * the mistake is an impossible date.
 */
function flawedExample(type: RecordTypeName): {
  record: unknown;
  problems(index: number): readonly Problem[];
} {
  const { key, fields } = recordTypes[type];
  const good = exampleRecords[type];
  const reference = Object.entries(fields).find(([, field]) => typeof field.references === 'string');
  const flaw =
    reference === undefined ? { updated: IMPOSSIBLE_DATE_TIME } : { [reference[0]]: exampleIds.missing };
  const record = { ...good, ...flaw };
  const found =
    reference === undefined
      ? checkFields(planOf(fields), record, null).problems!
      : [missingReference(reference[0], reference[1].references as RecordTypeName)];
  const id = (good as Readonly<Record<string, unknown>>)[key] as string;
  return {
    record,
    problems: (index) => found.map(({ field, code, message }) => problem(index, id, field, code, message)),
  };
}

function missingReference(field: string, target: RecordTypeName): FieldProblem {
  const message = `${field} ${unknownReference(target, exampleIds.missing)}`;
  return { field, code: 'unknown_reference', message };
}

export function interactionExchanges(): Exchanges {
  const { missing } = exampleIds;
  const flawed = { ...exampleInteraction, student_id: missing, item_id: missing };
  const problems = [missingReference('student_id', 'customers'), missingReference('item_id', 'shops')];
  const taken = { replayed: false, requestId: exampleIds.request };
  const recorded = answerOfInteraction(
    { kind: 'recorded', interaction: shownInteractionExample, ...taken },
    exampleIds.request,
  );
  const refused = answerOfInteraction({ kind: 'refused', problems, ...taken }, exampleIds.request);
  return {
    recorded: {
      summary: 'The interaction is recorded',
      body: exampleInteraction,
      ...readAnswer(recorded),
    },
    refused: { summary: 'Every problem is named', body: flawed, ...readAnswer(refused) },
  };
}

function readAnswer({ status, json }: Answer): { readonly status: number; readonly answer: unknown } {
  return { status, answer: JSON.parse(String(json)) };
}
