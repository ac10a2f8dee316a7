// What the descriptions of operations have in common.

import { INTERACTIONS, type RecordTypeName } from '@headgate/catalogue/record-types.ts';
import type { Action } from '../../access/scopes.ts';
import { hostMissing } from '../fixed-refusals.ts';
import { lacksScope } from '../gate.ts';
import { readLimit } from '../query.ts';
import { isRefusal, type Refusal } from '../refusals.ts';
import type { Access } from '../routes.ts';
import { codeSamples, curlOf } from './code-samples.ts';
import { type Example, type Operation, type Response, refTo } from './document-shape.ts';
import {
  answered,
  jsonContent,
  keyHeaders,
  openHeaders,
  type Responses,
  refused,
  statusesOfAccess,
} from './responses.ts';

/** What an operation does not share with the others that need the same access. */
export interface Own extends Pick<Operation, 'operationId' | 'summary' | 'description' | 'parameters'> {
  readonly responses: Responses;
  /** The schema of the request's body, and the example whose request is shown. */
  readonly body?: { readonly schema: string; readonly name: string; readonly example: Example };
  /** The path and query of the code samples. */
  readonly path: string;
  /** The method of the code samples, if curl does not use it by itself. */
  readonly method?: 'POST' | 'PUT' | 'DELETE';
  /** The lines of the TypeScript sample that use `client`. Missing if the client does not support the request. */
  readonly typescript?: string;
  /** The anchor on the reference page, without the tag. */
  readonly anchor: string;
}

/** Describes an operation that needs a key with a scope for the action, or for the action on one type. */
export function keyed(
  action: Action,
  type: RecordTypeName | undefined,
  own: Own,
  tag: string = type ?? INTERACTIONS,
): Operation {
  const scopes = type === undefined ? [action] : [action, `${action}:${type}`];
  const security = scopes.map((scope) => ({ apiKey: [scope] }));
  const forbidden = refused(refusalFrom(lacksScope({ scopes: [] }, action, type)));
  const responses = { ...own.responses, 403: forbidden };
  return describe('key', tag, security, { ...own, responses });
}

export function describe(access: Access, tag: string, security: Operation['security'], own: Own): Operation {
  const { operationId, summary, description, parameters, body, responses, typescript, anchor } = own;
  const { path, method } = own;
  const sent = body?.example['x-request'];
  return {
    operationId,
    summary,
    description,
    tags: [tag],
    security,
    parameters,
    requestBody: body && {
      required: true,
      content: jsonContent(refTo('schemas', body.schema), {
        [body.name]: { summary: body.example.summary, value: sent },
      }),
    },
    responses: { ...statusesOfAccess[access], ...responses },
    'x-codeSamples': codeSamples(curlOf(path, access === 'key', sent, method), typescript),
    'x-anchor': `${tag}-${anchor}`,
  };
}

export function found(
  description: string,
  schema: string,
  name: string,
  summary: string,
  value: unknown,
): Response {
  return answered(description, jsonContent(refTo('schemas', schema), { [name]: { summary, value } }));
}

const noQueryTaken: Refusal = {
  refusal: 'bad_request',
  message: 'The query parameter "limit" is not known; this path takes none.',
};

export const BAD_QUERY = 'A query parameter is unknown or has a bad value. Correct what `message` names.';
export const badLimit = refused(refusalFrom(readLimit('0')), keyHeaders, 'bad_limit', BAD_QUERY);
export const unknownParameter = refused(noQueryTaken, keyHeaders, 'unknown_parameter', BAD_QUERY);
export const noHost = refused(
  hostMissing,
  openHeaders,
  'no_host',
  'The headers violate HTTP/1.1: `Host` is missing, for example. Correct what `message` names.',
);

export function missing(one: string): Response {
  return refused({
    refusal: 'not_found',
    message: `There is no ${one} with this id in your organisation.`,
  });
}

export function refusalFrom(value: unknown): Refusal {
  if (!isRefusal(value)) throw new Error(`an example that should be refused is not: ${value}`);
  return value;
}
