// Makes the example responses to the example records, with the same code that makes real responses.

import type { Fields } from '@headgate/catalogue/declaration.ts';
import { occurredAt } from '@headgate/catalogue/kinds/event-timestamp.ts';
import { presenterOf, presentInteraction } from '@headgate/catalogue/presentation.ts';
import {
  interaction,
  type RecordTypeName,
  recordTypes,
  type ShownInteraction,
  type ShownRecord,
  type UploadTypeName,
  uploadTypes,
} from '@headgate/catalogue/record-types.ts';
import { checkFields, type FieldProblem, planOf } from '../../ingest/check-fields.ts';
import { outcomeOf, type Problem, problem } from '../../ingest/outcome.ts';
import { unknownReference } from '../../ingest/references.ts';
import type { Tally } from '../../store/rows.ts';
import { type IngestResponse, responseOfInteraction, responseOfUpload } from '../ingest-responses.ts';
import type { Example } from './document-shape.ts';
import {
  EXAMPLE_SEQ,
  exampleIds,
  exampleInteraction,
  exampleRecordedAt,
  exampleRecords,
  exampleUploads,
} from './example-records.ts';

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

export function idOfExample(type: UploadTypeName): string {
  return exampleUploads[type][uploadTypes[type].key] as string;
}

/**
 * Returns the responses to three uploads. If the uploads are sent in this order, the first is accepted, the second
 * partly accepted and the third refused.
 */
export function uploadExamples(type: UploadTypeName) {
  const good = exampleUploads[type];
  const { record: bad, problems } = flawedExample(type);
  const existing = 'The first is there already, the second is rejected';
  return {
    accepted: uploadExample(type, 'Every record is accepted', [good], [], { ...NOTHING, created: 1 }),
    partly_accepted: uploadExample(type, existing, [good, bad], problems, { ...NOTHING, unchanged: 1 }),
    refused: uploadExample(type, 'Every record is rejected', [bad], problems, NOTHING),
  };
}

/** Returns the response to an upload. The problems are those of its last record. */
function uploadExample(
  type: UploadTypeName,
  summary: string,
  records: readonly unknown[],
  found: readonly FieldProblem[],
  tally: Tally,
): Example {
  const received = records.length;
  const problems = problemsAt(type, received - 1, found);
  const rejected = problems.length === 0 ? 0 : 1;
  const checked = { received, rejected, superseded: 0, problems, omittedProblems: 0, warnings: [] };
  const batch = { batchId: exampleIds.batch, ...checked };
  const upload = { requestId: exampleIds.request, type, dryRun: false, batches: [batch] };
  const outcome = outcomeOf(upload, [tally], EXAMPLE_SEQ);
  const response = responseOfUpload({ kind: 'taken', outcome, replayed: false }, exampleIds.request);
  return exampleOf(summary, { records }, response);
}

function problemsAt(type: UploadTypeName, index: number, found: readonly FieldProblem[]): readonly Problem[] {
  return found.map(({ field, code, message }) => problem(index, idOfExample(type), field, code, message));
}

/** Returns the problems of the second record of an upload, if it has a typical mistake. */
export function flawedProblems(type: UploadTypeName): readonly Problem[] {
  return problemsAt(type, 1, flawedExample(type).problems);
}

/**
 * Returns a record with a typical mistake: a reference to a record that does not exist. If the type has no references,
 * the mistake is an impossible date.
 */
function flawedExample(type: UploadTypeName): { record: unknown; problems: readonly FieldProblem[] } {
  const fields: Fields = uploadTypes[type].fields;
  const good = exampleUploads[type];
  const reference = Object.entries(fields).find(([, field]) => typeof field.references === 'string');
  if (reference === undefined) {
    const record = { ...good, updated: IMPOSSIBLE_DATE_TIME };
    return { record, problems: checkFields(planOf(fields), record, null).problems! };
  }
  const [name, { references }] = reference;
  return {
    record: { ...good, [name]: exampleIds.missing },
    problems: [missingReference(name, references as RecordTypeName)],
  };
}

function missingReference(field: string, target: RecordTypeName): FieldProblem {
  const message = `${field} ${unknownReference(target, exampleIds.missing)}`;
  return { field, code: 'unknown_reference', message };
}

export function interactionExamples() {
  const { missing, request: requestId } = exampleIds;
  const flawed = { ...exampleInteraction, student_id: missing, item_id: missing };
  const problems = [missingReference('student_id', 'customers'), missingReference('item_id', 'shops')];
  const taken = { replayed: false, requestId };
  const recorded = { kind: 'recorded', interaction: shownInteractionExample, ...taken } as const;
  const refused = { kind: 'refused', problems, ...taken } as const;
  return {
    recorded: exampleOf(
      'The interaction is recorded',
      exampleInteraction,
      responseOfInteraction(recorded, requestId),
    ),
    refused: exampleOf('Every problem is named', flawed, responseOfInteraction(refused, requestId)),
  };
}

function exampleOf(summary: string, body: unknown, { json }: IngestResponse): Example {
  return { summary, value: JSON.parse(String(json)), 'x-request': body };
}
