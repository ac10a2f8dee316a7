// Makes the reference page from the API description. The page has a navigation, and shows next to each text the code
// that belongs to it.

import type { JsonSchema } from '@headgate/catalogue/kinds/kind.ts';
import { INTERACTIONS } from '@headgate/catalogue/record-types.ts';
import type { OpenApiDocument } from '../openapi/document.ts';
import {
  type Example,
  followed,
  type Operation,
  type Parameter,
  type Reference,
  type Response,
  type Tag,
} from '../openapi/document-shape.ts';
import { codeFigure, jsonFigure } from './code.ts';
import { fieldList, nestedFields, type ShownField } from './fields.ts';
import { type Html, html, joined, nothing } from './html.ts';
import { inline, paragraphs, type Section, sectionsOf } from './markdown.ts';

interface Placed {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
}

/** The objects that are described once for all operations, because many responses contain them. */
const responseObjects = [
  { id: 'upload-result', title: 'The upload result', schema: 'UploadResult', example: 'accepted' },
  { id: 'refusal', title: 'The refusal', schema: 'Refusal', example: 'unauthorized' },
];

export function referencePage(document: OpenApiDocument): string {
  const { info } = document;
  const { opening, sections } = sectionsOf(info.description);
  const operations = placedOperations(document);
  return html`<!doctype html>
<html lang="en-GB">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${info.title} API reference</title>
<meta name="description" content="${info.summary}">
<link rel="icon" href="${favicon}">
<link rel="stylesheet" href="docs/reference.css">
<script src="docs/reference.js"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="bar">
<a class="brand" href="#top">${info.title} <span>API ${info.version}</span></a>
</header>
${navigation(document, sections, operations)}
<main id="content">
<div class="row hero" id="top"><div class="text"><h1>${info.title} API reference</h1>
${opening}
<p class="meta">Version ${info.version} · <a href="openapi.json">OpenAPI 3.1 document</a></p></div>
<div class="beside">${glance(document, operations)}</div></div>
${sections.map(guideSection)}
${responseObjects.map((object) => responseSection(document, object))}
${document.tags.map((tag) => tagSection(document, tag, operations))}
</main>
</body>
</html>
`.text;
}

const favicon = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" fill="#0b6e75"/><path d="M4 4v8M12 4v8M4 8h8" stroke="#fff" stroke-width="2"/></svg>',
)}`;

function placedOperations(document: OpenApiDocument): readonly Placed[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item as Readonly<Record<string, Operation>>).map(([method, operation]) => ({
      path,
      method: method.toUpperCase(),
      operation,
    })),
  );
}

/** Returns the navigation. The filter finds each entry by its title and by the given words. */
function navigation(
  document: OpenApiDocument,
  sections: readonly Section[],
  operations: readonly Placed[],
): Html {
  const entry = (id: string, title: string, words: readonly string[], inner: readonly Html[] = []): Html =>
    html`<li><a href="#${id}" data-find="${[title, ...words].join(' ').toLowerCase()}">${title}</a>${
      inner.length === 0 ? nothing : html`<ul>${inner}</ul>`
    }</li>`;
  const group = (name: string, entries: readonly Html[]): Html =>
    html`<div class="group"><p>${name}</p><ul aria-label="${name}">${entries}</ul></div>\n`;
  const entryOfTag = (tag: string): Html => {
    const { 'x-displayName': title, 'x-object': object } = document.tags.find(({ name }) => name === tag)!;
    const inner = ofTag(tag, operations).map(({ path, operation }) =>
      entry(operation['x-anchor'], operation.summary, [path]),
    );
    return entry(tag, title, object === undefined ? [] : Object.keys(propertiesOf(document, object)), inner);
  };
  const wordsOf = ({ text }: Html): string[] =>
    [...text.matchAll(/ id="(?:code|status|scope)-([^"]+)"/g)].map(([, word]) => word!);
  const responses = responseObjects.map(({ id, title, schema }) => {
    const fields = nestedFields(document, document.components.schemas[schema]!, id);
    return entry(
      id,
      title,
      fields.map(({ name }) => name),
    );
  });
  return html`<nav id="navigation" aria-label="Contents">
${group(
  'Guide',
  sections.map(({ id, title, text }) => entry(id, title, wordsOf(text))),
)}${group('Responses', responses)}${document['x-tagGroups'].map(({ name, tags }) => group(name, tags.map(entryOfTag)))}</nav>`;
}

function ofTag(tag: string, operations: readonly Placed[]): readonly Placed[] {
  return operations.filter(({ operation }) => operation.tags[0] === tag);
}

function guideSection({ id, title, text, code }: Section): Html {
  return html`<section id="${id}" class="guide" aria-labelledby="${id}-title" data-spy>
<div class="row"><div class="text"><h2 id="${id}-title">${anchored(id, title)}</h2>
${text}</div>${beside(code)}</div></section>
`;
}

function beside(code: readonly Html[]): Html {
  return code.length === 0 ? nothing : html`<div class="beside">${code}</div>`;
}

function anchored(id: string, title: string): Html {
  return html`<a class="anchor" href="#${id}">${title}</a>`;
}

function responseSection(
  document: OpenApiDocument,
  { id, title, schema, example }: (typeof responseObjects)[number],
): Html {
  const text = fieldList(nestedFields(document, document.components.schemas[schema]!, id));
  return guideSection({ id, title, text, code: [jsonFigure(title, exampleOf(document, example))] });
}

/** Returns the first example with this name in the responses of all operations. */
function exampleOf(document: OpenApiDocument, name: string): unknown {
  const responses = placedOperations(document).flatMap(({ operation }) => Object.values(operation.responses));
  const examples = responses.map((response) => examplesOf(followed<Response>(document, response))[name]);
  return examples.find((example) => example !== undefined)!.value;
}

function examplesOf({ content }: Response): Readonly<Record<string, Example>> {
  return content?.['application/json'].examples ?? {};
}

function tagSection(document: OpenApiDocument, tag: Tag, operations: readonly Placed[]): Html {
  const { name, 'x-displayName': title, 'x-object': object } = tag;
  const own = ofTag(name, operations);
  return html`<section id="${name}" class="tag" aria-labelledby="${name}-title" data-spy>
<div class="row"><div class="text"><h2 id="${name}-title">${anchored(name, title)}</h2>
${paragraphs(tag.description)}</div><div class="beside">${endpoints(own)}</div></div>
${object === undefined ? nothing : objectPart(document, name, object, own)}
${own.map((placed) => operationPart(document, placed))}</section>
`;
}

/** Returns a short list of all endpoints. The endpoints of all record types are merged into one with `{type}`. */
function glance(document: OpenApiDocument, operations: readonly Placed[]): Html {
  const [first, ...others] = document['x-tagGroups'][0]!.tags;
  const shown = operations.filter(({ operation }) => !others.includes(operation.tags[0]));
  return endpoints(shown.map((one) => ({ ...one, path: one.path.replace(`/${first}`, '/{type}') })));
}

function endpoints(operations: readonly Placed[]): Html {
  const lines = operations.map(
    ({ method, path, operation }) =>
      html`<li><a href="#${operation['x-anchor']}">${methodBadge(method)} <code>${path}</code></a></li>`,
  );
  return html`<div class="endpoints"><p>Endpoints</p><ul>${lines}</ul></div>`;
}

function methodBadge(method: string): Html {
  return html`<span class="method ${method.toLowerCase()}">${method}</span>`;
}

type Properties = Readonly<Record<string, JsonSchema>>;

function propertiesOf(document: OpenApiDocument, schema: string): Properties {
  return document.components.schemas[schema]!.properties as Properties;
}

function objectPart(
  document: OpenApiDocument,
  tag: string,
  object: string,
  operations: readonly Placed[],
): Html {
  /** Undefined for an object that clients only read. */
  const input = document.components.schemas[`${object}Input`] as
    | { readonly properties: Properties; readonly required: readonly string[] }
    | undefined;
  const markOf = (name: string): string => {
    if (input === undefined) return '';
    if (!(name in input.properties)) return 'set by Headgate';
    return input.required.includes(name) ? 'required' : '';
  };
  const fields = Object.entries(propertiesOf(document, object)).map(
    ([name, schema]): ShownField => ({
      id: `${tag}-${name}`,
      name,
      schema,
      mark: markOf(name),
    }),
  );
  const id = `${tag}-object`;
  const title = `The ${String(document.components.schemas[object]!.title).toLowerCase()} object`;
  const one = operations.find(({ operation }) => operation['x-anchor'] === `${tag}-get`)!;
  const example = Object.values(examplesOf(one.operation.responses['200'] as Response))[0]!;
  return html`<div class="row" id="${id}"><div class="text"><h3>${anchored(id, title)}</h3>
${fieldList(fields)}</div>${beside([jsonFigure(title, example.value)])}</div>`;
}

function operationPart(document: OpenApiDocument, { path, method, operation }: Placed): Html {
  const id = operation['x-anchor'];
  return html`<section id="${id}" class="operation" aria-labelledby="${id}-title" data-spy>
<div class="row"><div class="text"><h3 id="${id}-title">${anchored(id, operation.summary)}</h3>
<p class="endpoint">${methodBadge(method)} <code>${path}</code></p>
${paragraphs(operation.description)}
${scopesOf(operation)}
${bodyOf(document, operation)}
${parametersOf(document, operation)}
${responsesOf(document, operation)}</div>
<div class="beside">${requestTabs(operation)}${responseTabs(operation)}</div></div></section>
`;
}

function scopesOf({ security }: Operation): Html {
  if (security.length === 0) return html`<p class="scopes">Needs no key.</p>`;
  const scopes = security.map(({ apiKey }) => html`<code>${apiKey.join(' ')}</code>`);
  return html`<p class="scopes">Needs a key with the <a href="#authentication">scope</a> ${joined(scopes, ' or ')}.</p>`;
}

function bodyOf(document: OpenApiDocument, operation: Operation): Html {
  const {
    requestBody,
    tags: [tag],
    'x-anchor': anchor,
  } = operation;
  if (requestBody === undefined) return nothing;
  const schema = followed<JsonSchema>(document, requestBody.content['application/json'].schema);
  const { records } = schema.properties as { records?: JsonSchema };
  const isObject = records !== undefined || tag === INTERACTIONS;
  if (!isObject) return html`<h4>Body</h4>${fieldList(nestedFields(document, schema, `${anchor}-body`))}`;
  const { 'x-object': object } = document.tags.find(({ name }) => name === tag)!;
  const { title } = document.components.schemas[object!]!;
  const link = html`<a href="#${tag}-object">${String(title).toLowerCase()} object</a>`;
  if (records === undefined) {
    return html`<h4>Body</h4><p>One ${link}, without the fields that Headgate sets.</p>`;
  }
  const field = { id: null, name: 'records', schema: { ...records, type: 'array' }, mark: 'required' };
  return html`<h4>Body</h4>${fieldList([field])}<p>Each record is one ${link}.</p>`;
}

function parametersOf(document: OpenApiDocument, { parameters = [], 'x-anchor': anchor }: Operation): Html {
  const titles = { path: 'Path', query: 'Query', header: 'Headers' };
  return html`${Object.entries(titles).map(([where, title]) => {
    const fields = parameters
      .map((parameter) => followed<Parameter>(document, parameter))
      .filter((parameter) => parameter.in === where)
      .map(
        ({ name, description, schema, required }): ShownField => ({
          id: `${anchor}-${name}`,
          name,
          schema: { ...schema, description: description + boundsOf(schema) },
          mark: required ? 'required' : '',
        }),
      );
    return fields.length === 0 ? nothing : html`<h4>${title}</h4>${fieldList(fields)}`;
  })}`;
}

/** Returns a sentence with a parameter's limits. The descriptions of fields already contain their limits. */
function boundsOf({ minimum, maximum, maxLength, enum: values }: JsonSchema): string {
  if (Array.isArray(values)) return ` One of ${values.map((value) => `\`${value}\``).join(', ')}.`;
  if (minimum !== undefined && maximum !== undefined) return ` From ${minimum} to ${maximum}.`;
  return maxLength === undefined ? '' : ` At most ${maxLength} characters.`;
}

/** Returns the operation's own responses, followed by a collapsed list of the shared ones. */
function responsesOf(document: OpenApiDocument, { responses }: Operation): Html {
  const line = ([status, response]: readonly [string, Response | Reference]): Html => {
    const { description } = followed<Response>(document, response);
    return html`<li>${statusBadge(status)} <span>${inline(description)}</span></li>`;
  };
  const entries = Object.entries(responses);
  const own = entries.filter(([, response]) => !('$ref' in response));
  const others = entries.filter(([, response]) => '$ref' in response);
  return html`<h4>Responses</h4><ul class="statuses">${own.map(line)}</ul>
<details><summary>${others.length} more that many requests share</summary><ul class="statuses">${others.map(line)}</ul></details>`;
}

function statusBadge(status: string): Html {
  const badge = html`<span class="status s${status[0]!}">${status}</span>`;
  return Number(status) < 400 ? badge : html`<a href="#status-${status}">${badge}</a>`;
}

function requestTabs(operation: Operation): Html {
  const samples = operation['x-codeSamples'].map(({ lang, label, source }) =>
    codeFigure(lang, label, source),
  );
  return html`<div class="tabs" data-tabs="language" data-name="Request">${samples}</div>`;
}

/** Examples with this status are not shown. They differ only in the scope, which is shown next to them. */
const FORBIDDEN = '403';

function responseTabs(operation: Operation): Html {
  const figures = Object.entries(operation.responses).flatMap(([status, response]) => {
    if ('$ref' in response || status === FORBIDDEN) return [];
    const examples = Object.entries(examplesOf(response as Response));
    return examples.map(([name, { value }]) =>
      jsonFigure(examples.length === 1 ? status : `${status} ${name.replaceAll('_', ' ')}`, value),
    );
  });
  return html`<div class="tabs" data-tabs="" data-name="Response">${figures}</div>`;
}
