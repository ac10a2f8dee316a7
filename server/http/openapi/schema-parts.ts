// Makes the parts of which schemas consist.

import type { JsonSchema } from '@headgate/catalogue/kinds/kind.ts';
import { refTo } from './document-shape.ts';

/**
 * Returns the schema of an object. All properties are required, except for those named in `optional`. JSON leaves out
 * what is undefined.
 */
export function object(
  properties: Readonly<Record<string, JsonSchema>>,
  { title, description, optional = [] }: { title?: string; description?: string; optional?: string[] } = {},
): JsonSchema {
  return {
    title,
    type: 'object',
    description,
    properties,
    required: Object.keys(properties).filter((name) => !optional.includes(name)),
    additionalProperties: false,
  };
}

export function listOf(schema: string, description: string, bounds: JsonSchema = {}): JsonSchema {
  return { type: 'array', items: refTo('schemas', schema), ...bounds, description };
}

export function oneOf(values: readonly string[], description: string): JsonSchema {
  return { type: 'string', enum: values, description };
}

export function text(description: string): JsonSchema {
  return { type: 'string', description };
}

export function textOrNull(description: string): JsonSchema {
  return { type: ['string', 'null'], description };
}

export function count(description: string): JsonSchema {
  return { type: 'integer', minimum: 0, description };
}

export const MAY_BE_EMPTY = 'May be empty before the end of the list.';

export const nextCursor = textOrNull(
  'The `cursor` of the next page, or null at the end. Earlier pages may have fewer entries than `limit`, or none.',
);
