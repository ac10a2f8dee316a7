// Describes the operations and schemas of segments.

import { shownDateTimeSchema } from '@headgate/catalogue/kinds/date-time.ts';
import type { JsonSchema } from '@headgate/catalogue/kinds/kind.ts';
import { uuid } from '@headgate/catalogue/kinds/uuid.ts';
import type { ConditionProblem } from '../../analytics/segments/condition-problem.ts';
import { parseCondition } from '../../analytics/segments/parse-condition.ts';
import { NAME_RULE } from '../../analytics/segments/segment-definition.ts';
import { KEPT_MEMBER_CHANGES } from '../../store/segments.ts';
import { notAcceptable } from '../header-values.ts';
import { changesGone, LARGEST_PAGE_MEMBER_CHANGES, memberTypes, noCustomer } from '../member-handlers.ts';
import { apiRoutes } from '../routes.ts';
import { beingEvaluated, noSegment, notValid } from '../segment-handlers.ts';
import { literal } from './code-samples.ts';
import type { Example, Operation, Parameter } from './document-shape.ts';
import { refTo } from './document-shape.ts';
import { exampleRecordedAt, exampleRecords } from './example-records.ts';
import { badLimit, found, keyed, type Own, unknownParameter } from './operation.ts';
import { cursorParameter, idParameter, parameterRefs, query } from './parameters.ts';
import {
  answered,
  headerRefs,
  inTypes,
  jsonContent,
  keyHeaders,
  refused,
  statusesOfBodies,
} from './responses.ts';
import { count, listOf, MAY_BE_EMPTY, nextCursor, object, oneOf, text, textOrNull } from './schema-parts.ts';

export const SEGMENTS_TAG = 'segments';

const NAME = 'regulars';
const CUSTOMER = exampleRecords.customers.customer_id;
/** The number of the example's last change. */
const LATEST = 2;

const condition = {
  all: [
    { customer: 'region', in: ['GB', 'IE'] },
    { did: 'transactions', within: '30d', times: { at_least: 3 } },
  ],
};

const as_of = { seq: 1, at: exampleRecordedAt, complete: true };
const evaluation = { at: exampleRecordedAt, ms: 12, entered: 1, left: 0 };
const listed = {
  name: NAME,
  note: 'Who buys often',
  count: 1,
  created_at: exampleRecordedAt,
  saved_at: exampleRecordedAt,
  evaluation,
  failure: null,
  latest: LATEST,
};
const shown = { ...listed, condition, used_by: [] };

const time: JsonSchema = shownDateTimeSchema;

const listedProperties: Readonly<Record<string, JsonSchema>> = {
  name: text('The name.'),
  note: textOrNull('A note for people.'),
  count: count('How many members the segment has.'),
  created_at: { ...time, description: 'When the segment was saved first.' },
  saved_at: { ...time, description: 'When the condition or the note was saved last.' },
  evaluation: {
    oneOf: [refTo('schemas', 'SegmentEvaluation'), { type: 'null' }],
    description: 'The last evaluation that succeeded. Null if there is none.',
  },
  failure: {
    oneOf: [refTo('schemas', 'SegmentFailure'), { type: 'null' }],
    description: 'Why the last evaluation failed. Null if it succeeded. The members are those before it.',
  },
  latest: count('The number of the last change of the members.'),
};

const conditionSchema: JsonSchema = {
  type: 'object',
  title: 'Condition',
  description:
    'One of `{all: [conditions]}`, `{any: [conditions]}`, `{not: condition}`, `{customer: field, …tests}`, ' +
    '`{did: type, where, within, since, until, times | sum | average | distinct | last | first}`, `{segment: name}` and ' +
    '`{sample: {percent, salt}}`. The page on segments explains each.',
  additionalProperties: true,
};

export const segmentSchemas: Readonly<Record<string, JsonSchema>> = {
  Condition: conditionSchema,
  SegmentDefinition: object(
    {
      condition: refTo('schemas', 'Condition'),
      note: { ...textOrNull('A note for people.'), maxLength: 1000 },
    },
    { title: 'Segment to save', optional: ['note'] },
  ),
  PreviewRequest: object({ condition: refTo('schemas', 'Condition') }, { title: 'Condition to try' }),
  SegmentEvaluation: object(
    {
      at: { ...time, description: 'When. Relative times are computed from it.' },
      ms: count('The milliseconds that it took.'),
      entered: count('How many customers became members.'),
      left: count('How many customers were no longer members.'),
    },
    { title: 'Evaluation of a segment' },
  ),
  SegmentFailure: object(
    { at: { ...time, description: 'When.' }, message: text('Why.') },
    { title: 'Failed evaluation' },
  ),
  ListedSegment: object(listedProperties, { title: 'Segment in a list' }),
  Segment: object(
    {
      ...listedProperties,
      condition: refTo('schemas', 'Condition'),
      used_by: {
        type: 'array',
        items: { type: 'string' },
        description: 'The segments whose conditions use this one. It cannot be deleted while there are any.',
      },
    },
    { title: 'Segment' },
  ),
  SegmentList: object({ segments: listOf('ListedSegment', 'All segments, sorted by name.') }),
  ConditionNodeCount: object(
    {
      path: text('The path of the node, empty for the whole condition.'),
      count: count('For how many it holds.'),
    },
    { title: 'Node of a condition' },
  ),
  SegmentPreview: object(
    {
      count: count('How many customers the condition holds for.'),
      nodes: listOf('ConditionNodeCount', 'For how many customers each node holds, outer nodes first.'),
      sample: {
        type: 'array',
        items: uuid.schema,
        description: 'Up to ten of the customers.',
      },
      ms: count('The milliseconds that it took.'),
      as_of: refTo('schemas', 'AsOf'),
    },
    { title: 'Preview of a condition' },
  ),
  SegmentMember: object(
    { customer_id: uuid.schema, since: { ...time, description: 'When the customer became a member.' } },
    { title: 'Member of a segment' },
  ),
  MemberList: object({
    members: listOf('SegmentMember', `A page of members. ${MAY_BE_EMPTY}`),
    next_cursor: nextCursor,
  }),
  ExplainedNode: object(
    {
      path: text('The path of the node, empty for the whole condition.'),
      holds: { type: 'boolean', description: 'Whether the node holds for the customer.' },
      saw: {
        type: ['string', 'number', 'boolean', 'null'],
        description:
          'The value that the node tested: of a field, a number of rows, a sum, a time, or a position in a sample.',
      },
    },
    { title: 'Node of a condition, for a customer' },
  ),
  MemberExplanation: object(
    {
      member: { type: 'boolean', description: 'Whether the condition holds for the customer now.' },
      since: {
        oneOf: [time, { type: 'null' }],
        description: 'When an evaluation found the customer to be a member. Null if the last one did not.',
      },
      nodes: listOf('ExplainedNode', 'What each node saw, outer nodes first.'),
      as_of: refTo('schemas', 'AsOf'),
    },
    { title: 'Why a customer is a member or not' },
  ),
  MemberChange: object(
    {
      seq: count('The number of the change.'),
      customer_id: uuid.schema,
      change: oneOf(['entered', 'left'], 'What happened.'),
      at: { ...time, description: 'When an evaluation noticed it.' },
    },
    { title: 'Change of the members' },
  ),
  MemberChangeList: object({
    changes: listOf('MemberChange', 'The changes, in the order of their numbers.'),
    next: count('`after` of the next request.'),
    latest: count('The number of the last change of the segment.'),
  }),
};

const nameParameter: Parameter = {
  name: 'name',
  in: 'path',
  description: `The name of the segment: ${NAME_RULE}.`,
  required: true,
  schema: { type: 'string' },
  example: NAME,
};

const missing = refused(noSegment('regular', []));
const badCondition = refused(
  notValid(parseCondition({ customer: 'regoin', is: 'GB' }) as ConditionProblem),
  keyHeaders,
  'bad_condition',
  'The body or the condition is not valid. `path` is the path of the node that is not.',
);

function reading(own: Own): Operation {
  return keyed('analytics:read', undefined, own, SEGMENTS_TAG);
}

function writing(own: Own): Operation {
  return keyed('analytics:write', undefined, own, SEGMENTS_TAG);
}

const saved: Example = {
  summary: 'Customers who buy often',
  value: shown,
  'x-request': { condition, note: listed.note },
};

const preview: Example = {
  summary: 'Customers who buy often',
  value: {
    count: 0,
    nodes: [
      { path: '', count: 0 },
      { path: 'all[0]', count: 1 },
      { path: 'all[1]', count: 0 },
    ],
    sample: [],
    ms: 12,
    as_of,
  },
  'x-request': { condition },
};

const PATH = `/v1/segments/${NAME}`;

function listSegments(): Operation {
  return reading({
    operationId: 'listSegments',
    summary: 'List segments',
    description: 'Returns all segments with their last evaluation, but without their conditions.',
    responses: {
      200: answered('The segments.', jsonContent(refTo('schemas', 'SegmentList'))),
      400: unknownParameter,
    },
    path: apiRoutes.listSegments.path,
    typescript: `for (const segment of await client.segments()) {\n  console.log(segment.name, segment.count);\n}`,
    anchor: 'list',
  });
}

function previewSegment(): Operation {
  return reading({
    operationId: 'previewSegment',
    summary: 'Try a condition',
    description:
      'Counts for how many customers a condition and each of its nodes hold, exactly, and shows a few of them. Nothing ' +
      'is saved.',
    body: { schema: 'PreviewRequest', name: 'buy_often', example: preview },
    responses: {
      ...statusesOfBodies,
      200: answered('The counts.', jsonContent(refTo('schemas', 'SegmentPreview'))),
      400: badCondition,
    },
    path: apiRoutes.previewSegment.path,
    typescript: `const preview = await client.previewSegment(${literal(condition)});\nconsole.log(preview.count, preview.nodes);`,
    anchor: 'preview',
  });
}

function getSegment(): Operation {
  return reading({
    operationId: 'getSegment',
    summary: 'Get a segment',
    description: 'Returns a segment with its condition.',
    parameters: [nameParameter],
    responses: {
      200: found('The segment.', 'Segment', 'segment', 'Segment', shown),
      400: unknownParameter,
      404: missing,
    },
    path: PATH,
    typescript: `const segment = await client.getSegment('${NAME}');\nconsole.log(segment?.condition);`,
    anchor: 'get',
  });
}

function saveSegment(): Operation {
  return writing({
    operationId: 'saveSegment',
    summary: 'Save a segment',
    description:
      'Saves a new segment or changes one, and evaluates it. Customers who stay members keep their `since`. If the ' +
      'evaluation fails, the segment is saved all the same, and `failure` says why. The response is 404 if another ' +
      'request deletes the segment meanwhile.',
    parameters: [nameParameter],
    body: { schema: 'SegmentDefinition', name: 'buy_often', example: saved },
    responses: {
      ...statusesOfBodies,
      200: answered('The segment.', jsonContent(refTo('schemas', 'Segment'))),
      400: badCondition,
      404: missing,
      409: refused(beingEvaluated),
    },
    path: PATH,
    method: 'PUT',
    typescript: `const segment = await client.saveSegment('${NAME}', ${literal({ condition, note: listed.note })});\nconsole.log(segment.count, segment.failure);`,
    anchor: 'save',
  });
}

function deleteSegment(): Operation {
  return writing({
    operationId: 'deleteSegment',
    summary: 'Delete a segment',
    description:
      'Deletes a segment with its members and changes. A segment that another one uses is not deleted.',
    parameters: [nameParameter],
    responses: {
      204: { description: 'The segment is deleted.', headers: headerRefs(keyHeaders) },
      400: unknownParameter,
      404: missing,
      409: refused({
        refusal: 'conflict',
        message: `The segment "${NAME}" cannot be deleted, because the segment "newsletter" uses it.`,
      }),
    },
    path: PATH,
    method: 'DELETE',
    typescript: `console.log(await client.deleteSegment('${NAME}'));`,
    anchor: 'delete',
  });
}

function refreshSegment(): Operation {
  return writing({
    operationId: 'refreshSegment',
    summary: 'Evaluate a segment now',
    description: 'Evaluates a segment without waiting for its next turn, and returns it.',
    parameters: [nameParameter],
    responses: {
      200: answered('The segment.', jsonContent(refTo('schemas', 'Segment'))),
      400: unknownParameter,
      404: missing,
      409: refused(beingEvaluated),
    },
    path: `${PATH}/refresh`,
    method: 'POST',
    typescript: `const segment = await client.refreshSegment('${NAME}');\nconsole.log(segment?.evaluation);`,
    anchor: 'refresh',
  });
}

function listMembers(): Operation {
  return reading({
    operationId: 'listMembers',
    summary: 'List the members of a segment',
    description:
      'Returns the members as of the last evaluation, sorted by id. With `Accept: application/x-ndjson` or `text/csv`, ' +
      'the response has all members.',
    parameters: [nameParameter, ...parameterRefs('Limit'), cursorParameter([CUSTOMER, '2'])],
    responses: {
      200: inTypes(
        memberTypes,
        found('A page of members.', 'MemberList', 'page', 'The last page', {
          members: [{ customer_id: CUSTOMER, since: exampleRecordedAt }],
          next_cursor: null,
        }),
      ),
      400: badLimit,
      404: missing,
      406: refused(notAcceptable(memberTypes)),
    },
    path: `${PATH}/members`,
    typescript: `for await (const member of client.segmentMembers('${NAME}')) {\n  console.log(member.customer_id, member.since);\n}`,
    anchor: 'members',
  });
}

function explainMember(): Operation {
  return reading({
    operationId: 'explainMember',
    summary: 'Explain why a customer is a member or not',
    description: 'Evaluates the condition for one customer, and shows what each node saw.',
    parameters: [nameParameter, idParameter('The `customer_id`.', CUSTOMER)],
    responses: {
      200: answered('The explanation.', jsonContent(refTo('schemas', 'MemberExplanation'))),
      400: unknownParameter,
      404: refused(noCustomer),
    },
    path: `${PATH}/members/${CUSTOMER}`,
    typescript: `const why = await client.explainMember('${NAME}', '${CUSTOMER}');\nconsole.log(why?.member, why?.nodes);`,
    anchor: 'why',
  });
}

function listMemberChanges(): Operation {
  return reading({
    operationId: 'listMemberChanges',
    summary: 'Follow who enters and leaves a segment',
    description:
      'Returns the changes after a number. Pass `next` as `after` of the next request. Customers who left are kept for a ' +
      `time that the operator sets, but only until the segment has had ${KEPT_MEMBER_CHANGES.toLocaleString('en-GB')} further changes.`,
    parameters: [
      nameParameter,
      query(
        'after',
        '`next` of the previous page. By default, all changes that are kept.',
        { type: 'integer', minimum: 0 },
        LATEST,
      ),
      query(
        'limit',
        'The most changes on a page.',
        { type: 'integer', minimum: 1, maximum: LARGEST_PAGE_MEMBER_CHANGES },
        100,
      ),
    ],
    responses: {
      200: found('A page of changes.', 'MemberChangeList', 'page', 'One change', {
        changes: [{ seq: LATEST, customer_id: CUSTOMER, change: 'entered', at: exampleRecordedAt }],
        next: LATEST,
        latest: LATEST,
      }),
      400: unknownParameter,
      404: missing,
      410: refused(changesGone(LATEST)),
    },
    path: `${PATH}/changes?after=0`,
    typescript: `for await (const { changes, next } of client.memberChanges('${NAME}')) {\n  for (const { customer_id, change } of changes) console.log(customer_id, change);\n  console.log(next);\n}`,
    anchor: 'changes',
  });
}

export const segmentOperations = {
  listSegments,
  previewSegment,
  getSegment,
  saveSegment,
  deleteSegment,
  refreshSegment,
  listMembers,
  explainMember,
  listMemberChanges,
};
