// Declares types for the parts of OpenAPI 3.1 that Headgate's description uses.

import type { JsonSchema } from '@headgate/catalogue/kinds/kind.ts';
import type { OpenApiDocument } from './document.ts';

export type Reference = { readonly $ref: string };

export interface Example {
  readonly summary: string;
  readonly value: unknown;
  /** The request body to which this is the response. A string is the text of the body, not a JSON string. */
  readonly 'x-request'?: unknown;
}

export interface Content {
  readonly 'application/json': {
    readonly schema: JsonSchema;
    readonly examples?: Readonly<Record<string, Example>>;
  };
  /** The other formats, which the header Accept can ask for. */
  readonly [mediaType: string]: { readonly schema?: JsonSchema };
}

export interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Reference>>;
  readonly content?: Content;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'query' | 'path' | 'header';
  readonly description: string;
  readonly required: boolean;
  readonly schema: JsonSchema;
  readonly example?: unknown;
}

export interface CodeSample {
  readonly lang: string;
  readonly label: string;
  readonly source: string;
}

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly [string];
  readonly security: readonly { readonly apiKey: readonly string[] }[];
  readonly parameters?: readonly (Parameter | Reference)[] | undefined;
  readonly requestBody?: { readonly required: true; readonly content: Content } | undefined;
  readonly responses: Readonly<Record<string, Response | Reference>>;
  readonly 'x-codeSamples': readonly CodeSample[];
  /** The anchor of the operation on the reference page. */
  readonly 'x-anchor': string;
}

export interface Tag {
  readonly name: string;
  readonly description: string;
  /** The component schema of the object that the tag's operations handle. Missing if there is no such object. */
  readonly 'x-object'?: string;
  readonly 'x-displayName': string;
}

export function refTo(section: 'schemas' | 'responses' | 'headers' | 'parameters', name: string): Reference {
  return { $ref: `#/components/${section}/${name}` };
}

/** Returns the target of a reference within the document. */
export function followed<Target extends object>(
  document: OpenApiDocument,
  thing: Target | Reference,
): Target {
  if (!('$ref' in thing) || typeof thing.$ref !== 'string') return thing as Target;
  const steps = thing.$ref.slice('#/'.length).split('/');
  return steps.reduce<unknown>((place, step) => (place as Record<string, unknown>)[step], document) as Target;
}
