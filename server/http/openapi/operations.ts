// Describes every operation of the API: its purpose, parameters and responses.

import {
  INTERACTIONS,
  type RecordTypeName,
  recordTypes,
  type UploadTypeName,
} from '@headgate/catalogue/record-types.ts';
import { dependenciesOf } from '@headgate/catalogue/references.ts';
import { howToSendAgain } from '../../ingest/outcome.ts';
import { shuttingDown } from '../fixed-refusals.ts';
import type { Refusal } from '../refusals.ts';
import { type ApiRouteName, apiRoutes } from '../routes.ts';
import { getRecommendationReport, runSql } from './analytics-operations.ts';
import { literal } from './code-samples.ts';
import { type Example, type Operation, type Response, refTo } from './document-shape.ts';
import { exampleInteraction, exampleUploads } from './example-records.ts';
import {
  idOfExample,
  interactionExamples,
  shownExample,
  shownInteractionExample,
  uploadExamples,
} from './examples.ts';
import { getUpload, getUsage, listChanges, listUploads } from './ledger-operations.ts';
import {
  badLimit,
  describe,
  found,
  keyed,
  missing,
  noHost,
  type Own,
  unknownParameter,
} from './operation.ts';
import { cursorParameter, idParameter, interactionQuery, parameterRefs } from './parameters.ts';
import {
  answered,
  describeRefusal,
  headerRefs,
  jsonContent,
  keyHeaders,
  openHeaders,
  type Responses,
  refusalExample,
  refused,
  statusesOfWrites,
} from './responses.ts';
import { linkTo, pascalCase, schemaNameOf } from './schemas.ts';
import { segmentOperations } from './segment-operations.ts';

export const SERVICE_TAG = 'service';

const interactionsPath = apiRoutes.listInteractions.path;
const writeHeaders = [...keyHeaders, 'Idempotency-Replayed', 'Preference-Applied'] as const;

/** The operations that exist once for each record type. */
export const recordOperations = { uploadRecords, listRecords, getRecord } satisfies {
  readonly [R in ApiRouteName]?: (type: RecordTypeName) => Operation;
};

export const otherOperations: {
  readonly [R in Exclude<ApiRouteName, keyof typeof recordOperations>]: () => Operation;
} = {
  recordInteraction,
  listInteractions,
  getInteraction,
  listUploads,
  getUpload,
  listChanges,
  getUsage,
  runSql,
  getRecommendationReport,
  ...segmentOperations,
  getLiveness,
  getReadiness,
  getOpenApi,
};

function uploadRecords(type: RecordTypeName): Operation {
  const needed = dependenciesOf(recordTypes[type].fields);
  const order =
    needed.length === 0
      ? 'They refer to no other type, so they can be uploaded at any time.'
      : `They refer to ${needed.map(linkTo).join(' and ')}: upload these first.`;
  return keyed(
    'data:write',
    type,
    upload(type, schemaNameOf(type), `Creates new records and replaces existing ones. ${order}`),
  );
}

/** Describes the upload of interactions, which has the path of a record type, but other scopes. */
export function uploadInteractions(): Operation {
  return keyed(
    'interactions:write',
    undefined,
    upload(
      INTERACTIONS,
      'Interaction',
      'Records many interactions. Give each an `interaction_id`, or the request an `Idempotency-Key`, so that they ' +
        'are recorded only once even if they are sent several times.',
    ),
  );
}

/** Describes what the uploads of all types have in common. */
function upload(type: UploadTypeName, schemaName: string, description: string): Own {
  const { accepted, partly_accepted, refused: rejected } = uploadExamples(type);
  const result = refTo('schemas', 'UploadResult');
  const resultOrRefusal = { oneOf: [result, refTo('schemas', 'Refusal')] };
  const unreadable = { ...refusalExample(noRecords), 'x-request': { records: [] } };
  const withResult = (description: string, examples: Record<string, Example>): Response =>
    answered(description, jsonContent(result, examples), writeHeaders);
  return {
    operationId: `upload${pascalCase(type)}`,
    summary: `Upload ${wordsOf(type)}`,
    description: `${description} Returns an [upload result](#upload-result).`,
    parameters: parameterRefs('DryRun', 'IdempotencyKey', 'Prefer', 'ContentEncoding'),
    body: { schema: `${schemaName}Upload`, name: 'accepted', example: accepted },
    responses: {
      ...statusesOfWrites,
      200: withResult('Every record was accepted.', { accepted }),
      207: withResult('Some records were accepted and stored; `errors` lists the others.', {
        partly_accepted,
      }),
      400: answered(
        `No record was accepted, and \`errors\` gives the reasons. Or: ${describeRefusal('bad_request')}`,
        jsonContent(resultOrRefusal, { refused: rejected, unreadable }),
        writeHeaders,
      ),
      500: answered(
        `The store did not confirm the upload, which may be stored or not. ${howToSendAgain(type)}. ` +
          'Or something unexpected happened: give the operator the `request_id`.',
        jsonContent(resultOrRefusal),
      ),
    },
    path: `/v1/data/${type}`,
    typescript: `const result = await client.upload('${type}', ${literal([exampleUploads[type]])});\nconsole.log(result.counts, result.errors);`,
    anchor: 'upload',
  };
}

function listRecords(type: RecordTypeName): Operation {
  const cursor = cursorParameter([idOfExample(type)]);
  const value = { type, records: [shownExample(type)], next_cursor: null };
  return keyed('data:read', type, {
    operationId: `list${pascalCase(type)}`,
    summary: `List ${wordsOf(type)}`,
    description:
      'Returns a page of records, ordered by id. Deleted records are left out unless `include_deleted` is true.',
    parameters: [...parameterRefs('Limit'), cursor, ...parameterRefs('IncludeDeleted')],
    responses: {
      200: found('A page of records.', `${schemaNameOf(type)}List`, 'page', 'The last page', value),
      400: badLimit,
    },
    path: `/v1/data/${type}?limit=100`,
    typescript: `for await (const record of client.list('${type}')) {\n  console.log(record.${recordTypes[type].key});\n}`,
    anchor: 'list',
  });
}

function getRecord(type: RecordTypeName): Operation {
  const { title, key } = recordTypes[type];
  const one = title.toLowerCase();
  const id = idOfExample(type);
  return keyed('data:read', type, {
    operationId: `get${schemaNameOf(type)}`,
    summary: `Get ${withArticle(one)}`,
    description: 'Returns the record with all its fields, even if it is marked as deleted.',
    parameters: [idParameter(`The \`${key}\` of the ${one}.`, id)],
    responses: {
      200: found('The record.', schemaNameOf(type), 'record', title, shownExample(type)),
      400: unknownParameter,
      404: missing(one),
    },
    path: `/v1/data/${type}/${id}`,
    typescript: `const record = await client.get('${type}', '${id}');\nconsole.log(record);`,
    anchor: 'get',
  });
}

function recordInteraction(): Operation {
  const { recorded, refused: rejected } = interactionExamples();
  const unreadable = { ...refusalExample(saidTwice), 'x-request': '{"city": "Ely", "city": "Cambridge"}' };
  return keyed('interactions:write', undefined, {
    operationId: 'recordInteraction',
    summary: 'Record an interaction',
    description:
      'Records one interaction of a user with an uploaded item. Send an `Idempotency-Key`, so that it is recorded ' +
      'only once even if it is sent several times.',
    parameters: parameterRefs('IdempotencyKey', 'Prefer', 'ContentEncoding'),
    body: { schema: 'InteractionInput', name: 'recorded', example: recorded },
    responses: {
      ...statusesOfWrites,
      201: answered(
        'The interaction as it is stored.',
        jsonContent(refTo('schemas', 'Interaction'), { recorded }),
        writeHeaders,
      ),
      400: answered(
        `The interaction was not accepted, and \`details\` gives the reasons. Or: ${describeRefusal('bad_request')}`,
        jsonContent(refTo('schemas', 'Refusal'), { refused: rejected, unreadable }),
        writeHeaders,
      ),
    },
    path: interactionsPath,
    typescript: `const recorded = await client.record(${literal(exampleInteraction)});\nconsole.log(recorded.interaction_id);`,
    anchor: 'record',
  });
}

function listInteractions(): Operation {
  const { item_type, item_id } = exampleInteraction;
  const value = { interactions: [shownInteractionExample], next_cursor: null };
  return keyed('interactions:read', undefined, {
    operationId: 'listInteractions',
    summary: 'List interactions',
    description:
      'Returns a page of interactions, newest first by `occurred_at`. With several filters, all of them must match.',
    parameters: interactionQuery,
    responses: {
      200: found('A page of interactions.', 'InteractionList', 'page', 'The last page', value),
      400: badLimit,
    },
    path: `${interactionsPath}?item_type=${item_type}&item_id=${item_id}`,
    typescript: `const ofShop = client.interactions(${literal({ item_type, item_id })});\nfor await (const interaction of ofShop) {\n  console.log(interaction.occurred_at, interaction.interaction_type);\n}`,
    anchor: 'list',
  });
}

function getInteraction(): Operation {
  const { interaction_id: id } = shownInteractionExample;
  return keyed('interactions:read', undefined, {
    operationId: 'getInteraction',
    summary: 'Get an interaction',
    description: 'Returns the interaction with all its fields.',
    parameters: [idParameter('The `interaction_id` from the response when it was recorded.', id)],
    responses: {
      200: found('The interaction.', 'Interaction', 'interaction', 'Interaction', shownInteractionExample),
      400: unknownParameter,
      404: missing('interaction'),
    },
    path: `${interactionsPath}/${id}`,
    typescript: `const interaction = await client.getInteraction('${id}');\nconsole.log(interaction);`,
    anchor: 'get',
  });
}

function getLiveness(): Operation {
  const description = 'Returns 200 as long as the process responds at all.';
  return probe('getLiveness', 'Is the process alive?', description, 'alive', {});
}

function getReadiness(): Operation {
  const description =
    'Returns 503 while the store is broken and while the service is shutting down. A store that is only busy is not broken.';
  const further = { 503: refused(shuttingDown, openHeaders) };
  return probe('getReadiness', 'Is it ready for requests?', description, 'ready', further);
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
  return describe('probe', SERVICE_TAG, [], {
    operationId,
    summary,
    description: `${description} Needs no key, and works over plain HTTP too.`,
    responses: { 200: answered('Yes.', content, openHeaders), 400: noHost, ...further },
    path,
    anchor: path.slice(1),
  });
}

function getOpenApi(): Operation {
  return describe('open', SERVICE_TAG, [], {
    operationId: 'getOpenApi',
    summary: 'Get this description',
    description:
      'Returns the API as an OpenAPI 3.1 document, with the limits of this server. Needs no key. The page at `/docs` ' +
      'is made from it.',
    parameters: parameterRefs('IfNoneMatch'),
    responses: {
      200: answered('The document.', jsonContent({ type: 'object' }), [...openHeaders, 'ETag']),
      304: {
        description: 'The version in `If-None-Match` is the current one.',
        headers: headerRefs([...openHeaders, 'ETag']),
      },
      400: noHost,
    },
    path: apiRoutes.getOpenApi.path,
    anchor: 'openapi',
  });
}

const noRecords: Refusal = {
  refusal: 'bad_request',
  message: '"records" is empty; send at least one record.',
};
const saidTwice: Refusal = {
  refusal: 'bad_request',
  message: 'The body has the key "city" twice in one object; use each key once.',
};
function wordsOf(type: UploadTypeName): string {
  return type.replaceAll('-', ' ');
}

function withArticle(noun: string): string {
  return `${/^[aeio]/.test(noun) ? 'an' : 'a'} ${noun}`;
}
