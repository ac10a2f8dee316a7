// Builds the OpenAPI 3.1 document of the API from the catalogue, the routes and their descriptions.

import { INTERACTIONS, type RecordTypeName, recordTypes } from '@headgate/catalogue/record-types.ts';
import { uploadOrder } from '@headgate/catalogue/references.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { type ApiRouteName, apiRoutes } from '../routes.ts';
import { ANALYTICS_TAG } from './analytics-operations.ts';
import type { Operation, Tag } from './document-shape.ts';
import { guide } from './guide.ts';
import { LEDGER_TAG } from './ledger-operations.ts';
import { otherOperations, recordOperations, SERVICE_TAG, uploadInteractions } from './operations.ts';
import { parameters } from './parameters.ts';
import { headers, sharedResponses } from './responses.ts';
import { componentSchemas, schemaNameOf } from './schemas.ts';
import { SEGMENTS_TAG } from './segment-operations.ts';

/** The limits of the server that the document states. They come from the settings. */
export interface ApiLimits {
  readonly maxRecords: number;
  readonly batchSize: number;
  readonly maxBodyBytes: number;
  /** Null if the rate is not limited. */
  readonly rateLimitPerSecond: number | null;
}

export type OpenApiDocument = ReturnType<typeof openApiDocument>;

export function openApiDocument(limits: ApiLimits) {
  return {
    openapi: '3.1.1',
    info: {
      title: 'Headgate',
      version: packageJson.version,
      summary: packageJson.description,
      description: guide(limits),
      license: { name: packageJson.license, identifier: packageJson.license },
    },
    servers: [{ url: '/', description: 'The server that this description came from' }],
    tags: tags(),
    'x-tagGroups': [
      { name: 'Records', tags: uploadOrder(recordTypes) },
      { name: 'Interactions', tags: [INTERACTIONS] },
      { name: 'Ledger', tags: [LEDGER_TAG] },
      { name: 'Analytics', tags: [ANALYTICS_TAG, SEGMENTS_TAG] },
      { name: 'Service', tags: [SERVICE_TAG] },
    ],
    paths: paths(),
    components: {
      securitySchemes: {
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          description:
            'An API key, `hg_…`, from the operator. Each operation lists scopes, of which the key needs one.',
        },
      },
      schemas: componentSchemas(limits),
      responses: sharedResponses(limits),
      headers,
      parameters,
    },
  };
}

function tags(): Tag[] {
  return [
    ...uploadOrder(recordTypes).map((type) => tagOf(type)),
    {
      name: INTERACTIONS,
      'x-displayName': 'Interactions',
      'x-object': 'Interaction',
      description:
        'What users do with tags, offers, shops and keywords. `source` distinguishes interactions that began with a ' +
        'recommendation from normal browsing.',
    },
    {
      name: LEDGER_TAG,
      'x-displayName': 'Uploads and changes',
      'x-object': 'UploadWithCauses',
      description:
        'The ledger remembers every upload: who sent what, when, with what result. Its numbers, `seq`, have no gaps, and ' +
        'tell a follower of changes how far it is.',
    },
    {
      name: ANALYTICS_TAG,
      'x-displayName': 'Analytics',
      description:
        "Queries run on a copy of the organisation's data, which is made when it is needed first and is kept up to date " +
        'with the ledger.',
    },
    {
      name: SEGMENTS_TAG,
      'x-displayName': 'Segments',
      'x-object': 'Segment',
      description:
        'A segment is a condition on customers and what they did. It is evaluated every 15 minutes, unless the operator ' +
        'has set another time, and on request.',
    },
    {
      name: SERVICE_TAG,
      'x-displayName': 'Service',
      description: 'For supervisors, load balancers and tools.',
    },
  ];
}

function tagOf(type: RecordTypeName): Tag {
  const { title, key } = recordTypes[type];
  const displayName = type[0]!.toUpperCase() + type.slice(1).replaceAll('-', ' ');
  return {
    name: type,
    'x-displayName': displayName,
    'x-object': schemaNameOf(type),
    description: `${displayName} of the organisation, each identified by its \`${key}\`. One is a ${title.toLowerCase()}.`,
  };
}

interface PathItem {
  readonly get?: Operation;
  readonly post?: Operation;
  readonly put?: Operation;
  readonly delete?: Operation;
}

/** Returns all paths. The paths of each record type are together, and the types are in upload order. */
function paths(): Record<string, PathItem> {
  const all: Record<string, PathItem> = {};
  const add = (route: string, operation: Operation, type = ''): void => {
    const { method, path } = apiRoutes[route as ApiRouteName];
    const shown = path.replace(':type', type).replaceAll(/:(\w+)/g, '{$1}');
    all[shown] = { ...all[shown], [method.toLowerCase()]: operation };
  };
  for (const type of uploadOrder(recordTypes)) {
    for (const [route, describe] of Object.entries(recordOperations)) add(route, describe(type), type);
  }
  for (const [route, describe] of Object.entries(otherOperations)) add(route, describe());
  add('uploadRecords', uploadInteractions(), INTERACTIONS);
  return all;
}
