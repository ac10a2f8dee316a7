// Checks responses against the API description.

import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { text } from 'node:stream/consumers';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { OpenApiDocument } from '../../server/http/openapi/document.ts';
import {
  followed,
  type Operation,
  type Parameter,
  type Response,
} from '../../server/http/openapi/document-shape.ts';

export interface DescribedOperation {
  /** As in the description: `/v1/data/shops/{id}`. */
  readonly path: string;
  readonly method: 'get' | 'post' | 'put' | 'delete';
  readonly operation: Operation;
}

export interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

export interface Got {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: unknown;
}

const DOCUMENT = 'openapi.json';

export class DescribedApi {
  readonly document: OpenApiDocument;
  readonly operations: readonly DescribedOperation[];
  readonly #ajv: Ajv2020;

  constructor(document: OpenApiDocument) {
    this.document = document;
    this.operations = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item as Record<string, Operation>).map(([method, operation]) => ({
        path,
        method: method as DescribedOperation['method'],
        operation,
      })),
    );
    // The description is not a schema itself. It contains schemas that refer to each other.
    this.#ajv = formats.default(new Ajv2020({ strict: false, allErrors: true }));
    this.#ajv.addSchema(document, DOCUMENT);
  }

  static async of(url: string): Promise<DescribedApi> {
    const answer = await fetch(`${url}/openapi.json`);
    assert.equal(answer.status, 200);
    return new DescribedApi((await answer.json()) as OpenApiDocument);
  }

  operation(operationId: string): DescribedOperation {
    const found = this.operations.find(({ operation }) => operation.operationId === operationId);
    assert.ok(found, `the description has no operation ${operationId}`);
    return found;
  }

  parameters({ operation }: DescribedOperation): readonly Parameter[] {
    return (operation.parameters ?? []).map((one) => followed<Parameter>(this.document, one as Parameter));
  }

  response({ operation }: DescribedOperation, status: number): Response | null {
    const response = operation.responses[status];
    return response === undefined ? null : followed<Response>(this.document, response);
  }

  /** Fails if the response has a status, a body or a header that the description does not list for the operation. */
  assertDescribed(described: DescribedOperation, got: Got): void {
    const { path, method, operation } = described;
    const what = `${method} ${path} answered ${got.status}: ${JSON.stringify(got.body)}`;
    const response = this.response(described, got.status);
    assert.ok(response, `a status that is not described: ${what}`);
    this.#assertHeaders(response, got, what);
    if (response.content === undefined) {
      assert.equal(got.body, undefined, what);
      return;
    }
    assert.match(got.headers['content-type'] ?? '', /^application\/json\b/, what);
    const own = operation.responses[got.status]!;
    const place = '$ref' in own ? own.$ref : `#/paths/${pointer(path)}/${method}/responses/${got.status}`;
    this.assertValid(`${place}/content/application~1json/schema`, got.body, what);
  }

  assertValid(place: string, body: unknown, what: string): void {
    const validate = this.#ajv.getSchema(DOCUMENT + place);
    assert.ok(validate, `the description has no schema at ${place}`);
    const problems = validate(body) ? [] : validate.errors;
    assert.deepEqual(problems, [], what);
  }

  #assertHeaders(response: Response, { headers }: Got, what: string): void {
    const told = Object.keys(response.headers ?? {});
    for (const name of Object.keys(this.document.components.headers)) {
      if (headers[name.toLowerCase()] === undefined) continue;
      assert.ok(told.includes(name), `a header ${name} that is not described: ${what}`);
    }
    for (const name of ['X-Request-Id', 'Retry-After', 'WWW-Authenticate', 'ETag']) {
      if (told.includes(name)) assert.ok(headers[name.toLowerCase()], `no header ${name}: ${what}`);
    }
  }
}

function pointer(path: string): string {
  return encodeURIComponent(path.replaceAll('~', '~0').replaceAll('/', '~1'));
}

/** Sends exactly the given request, including headers that `fetch` does not allow. */
export async function exchange(url: string, { method, path, headers = {}, body }: Sent): Promise<Got> {
  const sending = httpRequest(url + path, { method, headers, agent: false });
  const answered = Promise.withResolvers<Got>();
  sending.on('error', answered.reject).on('response', async (response) => {
    const content = await text(response);
    answered.resolve({
      status: response.statusCode!,
      headers: response.headers as Record<string, string | undefined>,
      body: content === '' ? undefined : JSON.parse(content),
    });
  });
  sending.end(body);
  return answered.promise;
}

/** Begins a request whose body never ends. Resolves when the server is reading it; `giveUp` ends it. */
export async function hold(
  url: string,
  { method, path, headers = {}, body = '' }: Sent,
): Promise<{ giveUp(): Promise<void> }> {
  const sending = httpRequest(url + path, {
    method,
    headers: { ...headers, 'Transfer-Encoding': 'chunked', Expect: '100-continue' },
    agent: false,
  });
  const closed = Promise.withResolvers<void>();
  sending
    .on('error', () => {})
    .on('response', (response) => response.resume())
    .on('close', () => closed.resolve());
  const awaited = Promise.withResolvers<void>();
  sending.on('continue', awaited.resolve);
  sending.flushHeaders();
  await awaited.promise;
  const written = Promise.withResolvers<void>();
  sending.write(body, () => written.resolve());
  await written.promise;
  return {
    async giveUp() {
      sending.destroy();
      await closed.promise;
    },
  };
}

/** Replaces the values that the server generates for each response. */
export function withoutGiven(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutGiven);
  if (value === null || typeof value !== 'object') return value;
  const isInteraction = 'interaction_id' in value;
  const given = [
    'request_id',
    'seq',
    'batch_id',
    'interaction_id',
    'ms',
    'at',
    ...(isInteraction ? ['created'] : []),
  ];
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      given.includes(name) ? 'given by the server' : withoutGiven(inner),
    ]),
  );
}
