// The API description: its document, how it is served, and that it agrees with the routes.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { recordTypeNames, uploadTypeNames } from '@headgate/catalogue/record-types.ts';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import type { OpenApiDocument } from '../server/http/openapi/document.ts';
import { apiRoutes, routes } from '../server/http/routes.ts';
import packageJson from '../server/package.json' with { type: 'json' };
import { testDatabases } from '../server/store/test-databases.ts';
import { DescribedApi, exchange } from './harness/described-api.ts';
import { runningHeadgate } from './harness/running-headgate.ts';

const kept = await readFile(new URL('../docs/openapi.json', import.meta.url), 'utf8');
const [store] = testDatabases;
const byHttps = { 'X-Forwarded-Proto': 'https' };
const openPaths = Object.values(routes).flatMap(({ path, access }) => (access === 'open' ? [path] : []));
const probePaths = Object.values(routes).flatMap(({ path, access }) => (access === 'probe' ? [path] : []));

describe('the API description', () => {
  const running = runningHeadgate(store!, { HEADGATE_RATE_LIMIT: '1000' });
  const proxied = runningHeadgate(store!, {
    HEADGATE_BEHIND_PROXY: 'true',
    HEADGATE_MAX_RECORDS: '7',
    HEADGATE_BATCH_SIZE: '3',
    HEADGATE_MAX_BODY: '64KiB',
    HEADGATE_RATE_LIMIT: 'off',
  });

  const describedBehindProxy = async (): Promise<DescribedApi> => {
    const { url } = proxied.headgate;
    const { body } = await exchange(url, { method: 'GET', path: '/openapi.json', headers: byHttps });
    return new DescribedApi(body as OpenApiDocument);
  };

  it('passes a public linter', async () => {
    const config = await createConfig({ extends: ['recommended'] });
    const problems = await lintFromString({ source: kept, absoluteRef: 'openapi.json', config });
    assert.deepEqual(
      problems.map(({ severity, ruleId, message, location }) => ({
        severity,
        ruleId,
        message,
        at: location[0]?.pointer,
      })),
      [],
    );
  });

  it('in the repository equals that of a server with default settings', async () => {
    const answer = await fetch(`${running.headgate.url}/openapi.json`);
    assert.deepEqual(await answer.json(), JSON.parse(kept));
  });

  it('has the version of the package, and an operation for every route and every type', async () => {
    const { document, operations } = new DescribedApi(JSON.parse(kept));
    assert.equal(document.info.version, packageJson.version);
    const described = operations.map(({ path, method }) => `${method.toUpperCase()} ${path}`);
    const wanted = Object.values(apiRoutes).flatMap(({ method, path }) =>
      path.includes(':type')
        ? (method === 'POST' ? uploadTypeNames : recordTypeNames).map(
            (type) => `${method} ${path.replace(':type', type).replaceAll(/:(\w+)/g, '{$1}')}`,
          )
        : [`${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`],
    );
    assert.deepEqual(described.toSorted(), wanted.toSorted());
    const ids = operations.map(({ operation }) => operation.operationId);
    assert.equal(new Set(ids).size, ids.length);
  });

  it('lists every type that the header Accept can ask for', () => {
    const api = new DescribedApi(JSON.parse(kept));
    const types = ['application/json', 'application/x-ndjson', 'text/csv', 'application/vnd.apache.parquet'];
    const several = api.operations.flatMap((described) => {
      const content = Object.keys(api.response(described, 200)?.content ?? {});
      return content.length > 1 ? [[described.operation.operationId, content.toSorted()]] : [];
    });
    assert.deepEqual(Object.fromEntries(several), {
      listChanges: types.slice(0, 2),
      listMembers: types.slice(0, 3),
      runSql: types.toSorted(),
    });
    // An operation that can refuse the header must say what it offers.
    const refusing = api.operations.filter((described) => api.response(described, 406) !== null);
    assert.deepEqual(
      refusing.map(({ operation }) => operation.operationId),
      several.map(([operationId]) => operationId),
    );
  });

  it('names the configured limits', async () => {
    const { document } = await describedBehindProxy();
    const upload = document.components.schemas.ShopUpload as {
      properties: { records: { maxItems: number } };
    };
    assert.equal(upload.properties.records.maxItems, 7);
    assert.match(document.info.description, /up to 7 records/);
    assert.match(document.info.description, /batches of\s+3,/);
    assert.match(document.info.description, /64 KiB/);
    assert.match(document.info.description, /not limited/);
  });

  it('names exactly the query parameters that each path accepts', async () => {
    const { key } = await running.headgate.newKey();
    const api = await DescribedApi.of(running.headgate.url);
    for (const described of api.operations) {
      if (described.operation.security.length === 0) continue;
      const { body } = await exchange(running.headgate.url, {
        method: described.method.toUpperCase(),
        path: `${described.path.replace('{id}', 'x')}?surely_not_known=1`,
        headers: { Authorization: `Bearer ${key}` },
      });
      const { message } = body as { message: string };
      const names = api.parameters(described).flatMap((one) => (one.in === 'query' ? [one.name] : []));
      const [, list] = /this path takes (.+)\.$/.exec(message) ?? assert.fail(message);
      const taken = list === 'none' ? [] : list!.split(', ');
      assert.deepEqual(names.toSorted(), taken.toSorted(), described.path);
    }
  });

  it('needs no key, and is sent again only to clients with another version', async () => {
    for (const path of openPaths) {
      const url = running.headgate.url + path;
      const first = await fetch(url);
      assert.equal(first.status, 200, path);
      assert.equal(first.headers.get('cache-control'), 'public, no-cache');
      const etag = first.headers.get('etag')!;
      assert.match(etag, /^"[\w-]{20,}"$/);
      for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
        const again = await fetch(url, { headers: { 'If-None-Match': known } });
        assert.equal(again.status, 304, known);
        assert.equal(await again.text(), '');
        assert.equal(again.headers.get('etag'), etag);
      }
      const other = await fetch(url, { headers: { 'If-None-Match': '"other"' } });
      assert.equal(other.status, 200);
      assert.equal(await other.text(), await first.text());
      const head = await fetch(url, { method: 'HEAD' });
      assert.equal(head.status, 200);
      assert.equal(await head.text(), '');
      assert.equal(head.headers.get('content-length'), String((await (await fetch(url)).bytes()).length));
      const headAgain = await fetch(url, { method: 'HEAD', headers: { 'If-None-Match': etag } });
      assert.deepEqual([headAgain.status, headAgain.headers.get('content-length')], [304, null]);
    }
  });

  it('is served by HTTPS only behind a proxy, unlike the probes', async () => {
    const { url } = proxied.headgate;
    const api = await describedBehindProxy();
    const described = api.operation('getOpenApi');
    for (const path of openPaths) {
      const refused = await exchange(url, { method: 'GET', path });
      assert.equal(refused.status, 403, path);
      api.assertDescribed(described, refused);
      const secure = await fetch(url + path, { headers: byHttps });
      assert.equal(secure.status, 200, path);
      assert.match(secure.headers.get('strict-transport-security')!, /max-age/);
    }
    for (const path of probePaths) {
      const { status } = await exchange(url, { method: 'GET', path });
      assert.equal(status, 200, path);
    }
    const unknown = await exchange(url, { method: 'GET', path: '/docs/nothing' });
    assert.equal(unknown.status, 403);
  });
});
