// Derives JSON Schema (2020-12) from the declarations, for clients, the API description and tests.

import type { Fields } from './declaration.ts';
import type { JsonSchema } from './kinds/kind.ts';

export function jsonSchemaOf(title: string, fields: Fields): JsonSchema {
  const entries = Object.entries(fields);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title,
    type: 'object',
    properties: Object.fromEntries(
      entries.map(([name, { kind, required, note }]) => [
        name,
        {
          ...(required ? kind.schema : { anyOf: [kind.schema, { type: 'null' }] }),
          // A required text must not be empty.
          ...(required && kind.name === 'text' ? { minLength: 1 } : {}),
          description: note === '' ? kind.accepts : `${note}: ${kind.accepts}`,
        },
      ]),
    ),
    required: entries.filter(([, field]) => field.required).map(([name]) => name),
    additionalProperties: false,
  };
}
