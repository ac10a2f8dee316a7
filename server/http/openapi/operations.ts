// Describes every operation of the API: its purpose, parameters and responses.

import { type RecordTypeName, recordTypes } from '@headgate/catalogue/record-types.ts';
import { dependenciesOf } from '@headgate/catalogue/references.ts';
import type { Action } from '../../access/scopes.ts';
import { hostMissing, shuttingDown } from '../fixed-refusals.ts';
import { lacksScope } from '../gate.ts';
import { readLimit } from '../query.ts';
import { isRefusal, type Refusal } from '../refusals.ts';
import { type Access, type ApiRouteName, apiRoutes } from '../routes.ts';
import { codeSamples, literal } from './code-samples.ts';
import { type Example, type Operation, type Reference, type Response, refTo } from './document-shape.ts';
import { exampleInteraction, exampleRecords } from './example-records.ts';
import {
  idOfExample,
  interactionExamples,
  shownExample,
  shownInteractionExample,
  uploadExamples,
} from './examples.ts';
import { idParameter, interactionQuery, parameterRefs, recordCursor } from './parameters.ts';
import {
  answered,
  describeRefusal,
  type HeaderName,
  headerRefs,
  jsonContent,
  type Responses,
  refusalExample,
  refused,
  statusesOfAccess,
  statusesOfBodies,
} from './responses.ts';
import { schemaNameOf } from './schemas.ts';

type PathOf<R extends ApiRouteName> = (typeof apiRoutes)[R]['path'];

/** The names of the routes that exist once for each record type. */
export type RecordRouteName = {
  [R in ApiRouteName]: PathOf<R> extends `${string}:type${string}` ? R : never;
}[ApiRouteName];

export const INTERACTIONS_TAG = 'interactions';
export const SERVICE_TAG = 'service';

const interactionsPath = apiRoutes.listInteractions.path;
const answerHeaders: readonly HeaderName[] = ['Idempotency-Replayed', 'Preference-Applied'];

export const recordOperations: {
  readonly [R in RecordRouteName]: (type: RecordTypeName) => Operation;
} = { uploadRecords, listRecords, getRecord };

export const otherOperations: {
  readonly [R in Exclude<ApiRouteName, RecordRouteName>]: () => Operation;
} = { recordInteraction, listInteractions, getInteraction, getLiveness, getReadiness, getOpenApi };

function uploadRecords(type: RecordTypeName): Operation {
  const name = schemaNameOf(type);
  const { accepted, partly_accepted, refused: rejected } = uploadExamples(type);
  const result = refTo('schemas', 'UploadResult');
  const upload = (description: string, examples: Record<string, Example>): Response =>
    answered(description, jsonContent(result, examples), 'key', answerHeaders);
  const needed = dependenciesOf(recordTypes[type].fields);
  const order =
    needed.length === 0
      ? 'They refer to no other type, so they can be uploaded at any time.'
      : `They refer to ${needed.map((target) => `[${target}](#${target})`).join(' and ')}: upload these first.`;
  const records = [exampleRecords[type]];
  return {
    operationId: `upload${pluralOf(type)}`,
    summary: `Upload ${wordsOf(type)}`,
    description:
      'Creates new records and replaces existing ones. Returns an ' +
      `[upload result](#upload-result). ${order}`,
    tags: [type],
    security: securityOf('data:write', type),
    parameters: parameterRefs('DryRun', 'IdempotencyKey', 'Prefer', 'ContentEncoding'),
    requestBody: {
      required: true,
      content: jsonContent(refTo('schemas', `${name}Upload`), { accepted: requestOf(accepted) }),
    },
    responses: withShared('key', {
      ...statusesOfBodies,
      200: upload('Every record was accepted.', { accepted }),
      207: upload('Some records were accepted and stored; `errors` lists the others.', { partly_accepted }),
      400: answered(
        `No record was accepted, and \`errors\` gives the reasons. Or: ${describeRefusal('bad_request')}`,
        jsonContent(
          { oneOf: [result, refTo('schemas', 'Refusal')] },
          {
            refused: rejected,
            unreadable: { ...refusalExample(noRecords), 'x-request': { records: [] } },
          },
        ),
        'key',
        answerHeaders,
      ),
      403: refused(scopeRefusal('data:write', type), 'key'),
      500: answered(
        'The store did not confirm the upload, which may be stored or not: send it again as it is; that is safe. ' +
          'Or something unexpected happened: give the operator the `request_id`.',
        jsonContent({ oneOf: [result, refTo('schemas', 'Refusal')] }),
        'key',
      ),
    }),
    'x-codeSamples': codeSamples({
      path: `/v1/data/${type}`,
      needsKey: true,
      body: { records },
      typescript: `const result = await client.upload('${type}', ${literal(records)});\nconsole.log(result.counts, result.errors);`,
    }),
    'x-anchor': `${type}-upload`,
  };
}

function listRecords(type: RecordTypeName): Operation {
  const example = {
    summary: 'The last page',
    value: { type, records: [shownExample(type)], next_cursor: null },
  };
  const page = jsonContent(refTo('schemas', `${schemaNameOf(type)}List`), { page: example });
  return {
    operationId: `list${pluralOf(type)}`,
    summary: `List ${wordsOf(type)}`,
    description:
      'Returns a page of records, ordered by id. Deleted records are left out unless `include_deleted` is true.',
    tags: [type],
    security: securityOf('data:read', type),
    parameters: [...parameterRefs('Limit'), recordCursor(type), ...parameterRefs('IncludeDeleted')],
    responses: withShared('key', {
      200: answered('A page of records.', page, 'key'),
      400: refused(badLimit, 'key', 'bad_limit', BAD_QUERY),
      403: refused(scopeRefusal('data:read', type), 'key'),
    }),
    'x-codeSamples': codeSamples({
      path: `/v1/data/${type}?limit=100`,
      needsKey: true,
      typescript: `for await (const record of client.list('${type}')) {\n  console.log(record.${recordTypes[type].key});\n}`,
    }),
    'x-anchor': `${type}-list`,
  };
}

function getRecord(type: RecordTypeName): Operation {
  const { title, key } = recordTypes[type];
  const one = title.toLowerCase();
  const id = idOfExample(type);
  const example = { summary: title, value: shownExample(type) };
  return {
    operationId: `get${schemaNameOf(type)}`,
    summary: `Get ${withArticle(one)}`,
    description: 'Returns the record with all its fields, even if it is marked as deleted.',
    tags: [type],
    security: securityOf('data:read', type),
    parameters: [idParameter(`The \`${key}\` of the ${one}.`, id)],
    responses: withShared('key', {
      200: answered(
        'The record.',
        jsonContent(refTo('schemas', schemaNameOf(type)), { record: example }),
        'key',
      ),
      400: refused(noQueryTaken, 'key', 'unknown_parameter', BAD_QUERY),
      403: refused(scopeRefusal('data:read', type), 'key'),
      404: refused(missing(one), 'key'),
    }),
    'x-codeSamples': codeSamples({
      path: `/v1/data/${type}/${id}`,
      needsKey: true,
      typescript: `const record = await client.get('${type}', '${id}');\nconsole.log(record);`,
    }),
    'x-anchor': `${type}-get`,
  };
}

function recordInteraction(): Operation {
  const { recorded, refused: rejected } = interactionExamples();
  return {
    operationId: 'recordInteraction',
    summary: 'Record an interaction',
    description:
      'Records one interaction of a user with an uploaded item. Send an `Idempotency-Key`, so that it is recorded ' +
      'only once even if it is sent several times.',
    tags: [INTERACTIONS_TAG],
    security: securityOf('interactions:write'),
    parameters: parameterRefs('IdempotencyKey', 'Prefer', 'ContentEncoding'),
    requestBody: {
      required: true,
      content: jsonContent(refTo('schemas', 'InteractionInput'), { recorded: requestOf(recorded) }),
    },
    responses: withShared('key', {
      ...statusesOfBodies,
      201: answered(
        'The interaction as it is stored.',
        jsonContent(refTo('schemas', 'Interaction'), { recorded }),
        'key',
        answerHeaders,
      ),
      400: answered(
        `The interaction was not accepted, and \`details\` gives the reasons. Or: ${describeRefusal('bad_request')}`,
        jsonContent(refTo('schemas', 'Refusal'), {
          refused: rejected,
          unreadable: { ...refusalExample(saidTwice), 'x-request': '{"city": "Ely", "city": "Cambridge"}' },
        }),
        'key',
        answerHeaders,
      ),
      403: refused(scopeRefusal('interactions:write'), 'key'),
    }),
    'x-codeSamples': codeSamples({
      path: interactionsPath,
      needsKey: true,
      body: exampleInteraction,
      typescript: `const recorded = await client.record(${literal(exampleInteraction)});\nconsole.log(recorded.interaction_id);`,
    }),
    'x-anchor': `${INTERACTIONS_TAG}-record`,
  };
}

function listInteractions(): Operation {
  const { item_type, item_id } = exampleInteraction;
  const example = {
    summary: 'The last page',
    value: { interactions: [shownInteractionExample], next_cursor: null },
  };
  return {
    operationId: 'listInteractions',
    summary: 'List interactions',
    description:
      'Returns a page of interactions, newest first by `occurred_at`. With several filters, all of them must match.',
    tags: [INTERACTIONS_TAG],
    security: securityOf('interactions:read'),
    parameters: interactionQuery,
    responses: withShared('key', {
      200: answered(
        'A page of interactions.',
        jsonContent(refTo('schemas', 'InteractionList'), { page: example }),
        'key',
      ),
      400: refused(badLimit, 'key', 'bad_limit', BAD_QUERY),
      403: refused(scopeRefusal('interactions:read'), 'key'),
    }),
    'x-codeSamples': codeSamples({
      path: `${interactionsPath}?item_type=${item_type}&item_id=${item_id}`,
      needsKey: true,
      typescript: `const ofShop = client.interactions(${literal({ item_type, item_id })});\nfor await (const interaction of ofShop) {\n  console.log(interaction.occurred_at, interaction.interaction_type);\n}`,
    }),
    'x-anchor': `${INTERACTIONS_TAG}-list`,
  };
}

function getInteraction(): Operation {
  const { interaction_id: id } = shownInteractionExample;
  const example = { summary: 'Interaction', value: shownInteractionExample };
  return {
    operationId: 'getInteraction',
    summary: 'Get an interaction',
    description: 'Returns the interaction with all its fields.',
    tags: [INTERACTIONS_TAG],
    security: securityOf('interactions:read'),
    parameters: [idParameter('The `interaction_id` from the response when it was recorded.', id)],
    responses: withShared('key', {
      200: answered(
        'The interaction.',
        jsonContent(refTo('schemas', 'Interaction'), { interaction: example }),
        'key',
      ),
      400: refused(noQueryTaken, 'key', 'unknown_parameter', BAD_QUERY),
      403: refused(scopeRefusal('interactions:read'), 'key'),
      404: refused(missing('interaction'), 'key'),
    }),
    'x-codeSamples': codeSamples({
      path: `${interactionsPath}/${id}`,
      needsKey: true,
      typescript: `const interaction = await client.getInteraction('${id}');\nconsole.log(interaction);`,
    }),
    'x-anchor': `${INTERACTIONS_TAG}-get`,
  };
}

function getLiveness(): Operation {
  return probe(
    'getLiveness',
    'Is the process alive?',
    'Returns 200 as long as the process responds at all.',
    'alive',
    {},
  );
}

function getReadiness(): Operation {
  return probe(
    'getReadiness',
    'Is it ready for requests?',
    'Returns 503 while the store is broken and while the service is shutting down. A store that is only busy is not broken.',
    'ready',
    { 503: refused(shuttingDown, 'probe') },
  );
}

function probe(
  operationId: 'getLiveness' | 'getReadiness',
  summary: string,
  description: string,
  status: string,
  further: Responses,
): Operation {
  const { path } = apiRoutes[operationId];
  const content = jsonContent(refTo('schemas', 'ProbeAnswer'), { answer: { summary, value: { status } } });
  return {
    operationId,
    summary,
    description: `${description} Needs no key, and works over plain HTTP too.`,
    tags: [SERVICE_TAG],
    security: [],
    responses: withShared('probe', {
      200: answered('Yes.', content, 'probe'),
      400: refused(hostMissing, 'probe', 'no_host', NO_HOST),
      ...further,
    }),
    'x-codeSamples': codeSamples({ path, needsKey: false, typescript: null }),
    'x-anchor': `${SERVICE_TAG}-${path.slice(1)}`,
  };
}

function getOpenApi(): Operation {
  const { path } = apiRoutes.getOpenApi;
  return {
    operationId: 'getOpenApi',
    summary: 'Get this description',
    description:
      'Returns the API as an OpenAPI 3.1 document, with the limits of this server. Needs no key. The page at `/docs` ' +
      'is made from it.',
    tags: [SERVICE_TAG],
    security: [],
    parameters: parameterRefs('IfNoneMatch'),
    responses: withShared('open', {
      200: answered('The document.', jsonContent({ type: 'object' }), 'open', ['ETag']),
      304: {
        description: 'The version in `If-None-Match` is the current one.',
        headers: headerRefs(['X-Request-Id', 'ETag']),
      },
      400: refused(hostMissing, 'open', 'no_host', NO_HOST),
    }),
    'x-codeSamples': codeSamples({ path, needsKey: false, typescript: null }),
    'x-anchor': `${SERVICE_TAG}-openapi`,
  };
}

const BAD_QUERY = 'A query parameter is unknown or has a bad value. Correct what `message` names.';
const NO_HOST = 'The headers violate HTTP/1.1: `Host` is missing, for example. Correct what `message` names.';

const noRecords: Refusal = {
  refusal: 'bad_request',
  message: '"records" is empty; send at least one record.',
};
const saidTwice: Refusal = {
  refusal: 'bad_request',
  message: 'The body has the key "city" twice in one object; use each key once.',
};
const noQueryTaken: Refusal = {
  refusal: 'bad_request',
  message: 'The query parameter "limit" is not known; this path takes none.',
};
const badLimit = refusalFrom(readLimit('0'));

function missing(one: string): Refusal {
  return { refusal: 'not_found', message: `There is no ${one} with this id in your organisation.` };
}

function scopeRefusal(action: Action, type?: RecordTypeName): Refusal {
  return refusalFrom(lacksScope({ scopes: [] }, action, type));
}

function refusalFrom(value: unknown): Refusal {
  if (!isRefusal(value)) throw new Error(`an example that should be refused is not: ${value}`);
  return value;
}

/** Returns the scopes that allow the action. A key needs only one of them. */
function securityOf(action: Action, type?: RecordTypeName): Operation['security'] {
  const scopes = type === undefined ? [action] : [action, `${action}:${type}`];
  return scopes.map((scope) => ({ apiKey: [scope] }));
}

/**
 * Adds the responses that every operation with this access can return. If `own` has a response with the same status,
 * that response is used instead.
 */
function withShared(access: Access, own: Responses): Record<string, Response | Reference> {
  return { ...statusesOfAccess[access], ...own };
}

/** Returns the request to which the example is the response. */
function requestOf({ summary, 'x-request': value }: Example): Example {
  return { summary, value };
}

function wordsOf(type: RecordTypeName): string {
  return type.replaceAll('-', ' ');
}

/** Returns `ShopCategories` for shop-categories. */
function pluralOf(type: RecordTypeName): string {
  return type
    .split('-')
    .map((word) => word[0]!.toUpperCase() + word.slice(1))
    .join('');
}

function withArticle(noun: string): string {
  return `${/^[aeio]/.test(noun) ? 'an' : 'a'} ${noun}`;
}
