// Renders the fields of a schema as a list. Each entry has the field's name and type, says whether the field is
// required, and describes it.

import { dateTime } from '@headgate/catalogue/kinds/date-time.ts';
import type { JsonSchema } from '@headgate/catalogue/kinds/kind.ts';
import type { OpenApiDocument } from '../openapi/document.ts';
import { followed } from '../openapi/document-shape.ts';
import { type Html, html, nothing } from './html.ts';
import { inline } from './markdown.ts';

export interface ShownField {
  readonly id: string | null;
  readonly name: string;
  readonly schema: JsonSchema;
  /** A remark such as `required`; empty if there is none. */
  readonly mark: string;
}

export function fieldList(fields: readonly ShownField[]): Html {
  return html`<ul class="fields">${fields.map(fieldItem)}</ul>`;
}

function fieldItem({ id, name, schema, mark }: ShownField): Html {
  const label =
    id === null ? html`<code>${name}</code>` : html`<a class="anchor" href="#${id}"><code>${name}</code></a>`;
  const { description } = schema;
  const named = id === null ? nothing : html` id="${id}"`;
  return html`<li${named}><p class="field-head">${label} <span class="type">${typeWords(schema)}</span>${markOf(mark)}</p>${
    typeof description === 'string' ? html`<p>${inline(description)}${defaultOf(schema)}</p>` : nothing
  }</li>`;
}

function markOf(mark: string): Html {
  return mark === ''
    ? nothing
    : html` <span class="mark ${mark === 'required' ? 'required' : ''}">${mark}</span>`;
}

function defaultOf(schema: JsonSchema): Html {
  return schema.default === undefined ? nothing : html` Default: <code>${String(schema.default)}</code>.`;
}

/** Returns the type that is shown after a name: `uuid`, `date-time`, `string`, `array of objects`. */
function typeWords(schema: JsonSchema): string {
  if (Array.isArray(schema.oneOf)) return schema.oneOf.map((one) => typeWords(one)).join(' or ');
  if (typeof schema.format === 'string') return schema.format;
  if (schema.pattern === dateTime.schema.pattern) return dateTime.name;
  if (Array.isArray(schema.enum)) return 'enum';
  return [schema.type]
    .flat()
    .filter((type) => type !== 'null')
    .join(' or ');
}

/** Returns all fields, with nested ones under their paths: `batches[].data.counts.received`. */
export function nestedFields(
  document: OpenApiDocument,
  schema: JsonSchema,
  prefix: string,
  path = '',
): ShownField[] {
  const object = followed<JsonSchema>(document, schema);
  const properties = (object.properties ?? {}) as Readonly<Record<string, JsonSchema>>;
  const required = (object.required ?? []) as readonly string[];
  return Object.entries(properties).flatMap(([name, property]) => {
    const own = followed<JsonSchema>(document, property);
    const place = path + name;
    const field: ShownField = {
      id: `${prefix}-${place.replaceAll('[]', '')}`,
      name: place,
      schema: own,
      mark: required.includes(name) ? '' : 'not always there',
    };
    const isList = own.items !== undefined;
    const inner = isList ? (own.items as JsonSchema) : own;
    return [field, ...nestedFields(document, inner, prefix, isList ? `${place}[].` : `${place}.`)];
  });
}
