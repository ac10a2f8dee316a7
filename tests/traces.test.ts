// Traces: the spans that a collector gets, and the behaviour without a collector.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { after, before, describe, it } from 'node:test';
import pg from 'pg';
import { testDatabases } from '../server/store/test-databases.ts';
import { apiOf } from './harness/api.ts';
import { type Environment, type Headgate, newDatabaseFolder, startHeadgate } from './harness/headgate.ts';
import { lineOf, logLines } from './harness/observed.ts';
import { leastRecord } from './harness/records.ts';
import { type ReceivedSpan, startTraceReceiver, type TraceReceiver } from './harness/trace-receiver.ts';
import { waitUntil } from './harness/waiting.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const parentId = 'b7ad6b7169203331';
const traceparent = `00-${traceId}-${parentId}-01`;
const SERVER_KIND = 2;
const INTERNAL_KIND = 1;

describe('traces', () => {
  let folder: Awaited<ReturnType<typeof newDatabaseFolder>>;
  let receiver: TraceReceiver;
  before(async () => {
    folder = await newDatabaseFolder();
    receiver = await startTraceReceiver();
  });
  after(async () => {
    await receiver.close();
    await folder.remove();
  });

  const sending = (environment: Environment = {}): Environment => ({
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    ...environment,
  });
  const withServer = async <Result>(
    environment: Environment,
    use: (headgate: Headgate) => Promise<Result>,
    database = `${folder.folder}/headgate.db`,
  ): Promise<Result> => {
    const headgate = await startHeadgate(database, environment);
    try {
      return await use(headgate);
    } finally {
      assert.equal(await headgate.stop(), 0);
    }
  };
  const spansOf = (requestId: string | null): { root: ReceivedSpan; children: readonly ReceivedSpan[] } => {
    const root = receiver.spans().find(({ attributes }) => attributes['headgate.request_id'] === requestId);
    assert.ok(root !== undefined, `there is no span of request ${requestId}`);
    return { root, children: receiver.spans().filter(({ parentSpanId }) => parentSpanId === root.spanId) };
  };

  it('a request is a span of its caller’s trace, with a child per step; a stop sends the rest', async () => {
    const environment = sending({
      OTEL_SERVICE_NAME: 'ingestion',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=acme',
    });
    const { requestId, issued } = await withServer(environment, async (headgate) => {
      const issued = await headgate.newKey();
      const records = [leastRecord('shops'), leastRecord('shops', { name: 7 })];
      const { body } = await apiOf(headgate.url, issued.key).upload('shops', records, {
        headers: { traceparent, tracestate: 'vendor=1' },
      });
      const line = await lineOf(headgate, body.request_id);
      assert.equal(line.trace_id, traceId);
      return { requestId: body.request_id, issued };
    });
    const { root, children } = spansOf(requestId);
    assert.equal(root.name, 'POST /v1/data/{type}');
    assert.equal(root.kind, SERVER_KIND);
    assert.equal(root.traceId, traceId);
    assert.equal(root.parentSpanId, parentId);
    assert.equal(root.traceState, 'vendor=1');
    assert.equal(root.isError, false);
    const { 'http.request.body.size': bodyBytes, ...attributes } = root.attributes;
    assert.ok((bodyBytes as number) > 100);
    assert.deepEqual(attributes, {
      'http.request.method': 'POST',
      'http.route': '/v1/data/{type}',
      'http.response.status_code': 207,
      'url.scheme': 'http',
      'headgate.request_id': requestId,
      'headgate.org_id': issued.org_id,
      'headgate.key_id': issued.key_id,
      'headgate.type': 'shops',
      'headgate.outcome': 'partly_accepted',
      'headgate.records.received': 2,
      'headgate.records.created': 1,
      'headgate.records.updated': 0,
      'headgate.records.unchanged': 0,
      'headgate.records.rejected': 1,
      'headgate.rejections.wrong_type': 1,
    });
    assert.equal(root.resource['service.name'], 'ingestion');
    assert.equal(root.resource['deployment.environment.name'], 'test');
    const inOrder = children.toSorted((one, other) => (one.startNs < other.startNs ? -1 : 1));
    assert.deepEqual(
      inOrder.map(({ name }) => name),
      ['read body', 'ingest', 'store write'],
    );
    for (const child of inOrder) {
      assert.equal(child.traceId, traceId);
      assert.equal(child.kind, INTERNAL_KIND);
      assert.ok(child.endNs > child.startNs, child.name);
    }
    const { path, 'x-tenant': tenant } = receiver.requests().at(-1)!;
    assert.deepEqual({ path, tenant }, { path: '/v1/traces', tenant: 'acme' });
  });

  it('a request without a caller’s trace starts one, which the log names', async () => {
    const environment = sending({ OTEL_BSP_SCHEDULE_DELAY: '10' });
    await withServer(environment, async (headgate) => {
      const { headers } = await apiOf(headgate.url, 'hg_wrong').list('shops');
      const requestId = headers.get('X-Request-Id');
      const { trace_id } = await lineOf(headgate, requestId);
      await waitUntil('the span has come by itself', () =>
        receiver.spans().some(({ attributes }) => attributes['headgate.request_id'] === requestId),
      );
      const { root, children } = spansOf(requestId);
      assert.equal(root.traceId, trace_id);
      assert.equal(root.parentSpanId, null);
      assert.deepEqual(children, []);
      assert.equal(root.attributes['http.response.status_code'], 401);
      assert.equal(root.resource['service.name'], 'headgate');
    });
  });

  it('follow the sampling decision of the caller, or the own sampler if there is none', async () => {
    const requestIdOf = async (headgate: Headgate, headers: Readonly<Record<string, string>>) =>
      (await apiOf(headgate.url, null).request('/nowhere', { headers })).headers.get('X-Request-Id');
    const has = (requestId: string | null): boolean =>
      receiver.spans().some(({ attributes }) => attributes['headgate.request_id'] === requestId);
    const [unsampled, malformed] = await withServer(sending(), async (headgate) => [
      await requestIdOf(headgate, { traceparent: `${traceparent.slice(0, -1)}0` }),
      await requestIdOf(headgate, { traceparent: 'not-a-parent' }),
    ]);
    assert.equal(has(unsampled!), false);
    assert.equal(has(malformed!), true);
    assert.notEqual(spansOf(malformed!).root.traceId, traceId);
    const environment = sending({
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0',
    });
    const [alone, sampled] = await withServer(environment, async (headgate) => [
      await requestIdOf(headgate, {}),
      await requestIdOf(headgate, { traceparent }),
    ]);
    assert.equal(has(alone!), false);
    assert.equal(has(sampled!), true);
  });

  it('come from every worker, and a response of 5xx makes its span an error', async () => {
    const { database, remove } = await testDatabases[1]!.newDatabase();
    try {
      const environment = sending({ HEADGATE_WORKERS: '2' });
      const use = async (headgate: Headgate) => {
        const ask = async (): Promise<string | null> => {
          const options = { headers: { Connection: 'close' } };
          return (await apiOf(headgate.url, null).request('/nowhere', options)).headers.get('X-Request-Id');
        };
        const ids = await Promise.all(Array.from({ length: 20 }, ask));
        const { key } = await headgate.newKey();
        const client = new pg.Client(database);
        await client.connect();
        await client.query('ALTER TABLE shops RENAME TO hidden');
        try {
          const { status, body } = await apiOf(headgate.url, key).upload('shops', [leastRecord('shops')]);
          assert.equal(status, 500);
          return { ids, failedId: body.request_id };
        } finally {
          await client.query('ALTER TABLE hidden RENAME TO shops');
          await client.end();
        }
      };
      const { ids, failedId } = await withServer(environment, use, database);
      const processes = new Set(
        ids.map((requestId) => spansOf(requestId).root.resource['service.instance.id']),
      );
      assert.equal(ids.length, 20);
      assert.equal(processes.size, 2);
      const { root } = spansOf(failedId);
      assert.equal(root.isError, true);
      assert.ok(root.attributes['error.type'] !== undefined);
    } finally {
      await remove();
    }
  });

  it('a collector that refuses spans causes one warning', async () => {
    const refusing = await startTraceReceiver(400);
    try {
      const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: refusing.url, OTEL_BSP_SCHEDULE_DELAY: '1' };
      const headgate = await startHeadgate(`${folder.folder}/headgate.db`, environment);
      const api = apiOf(headgate.url, null);
      while (refusing.requests().length < 5) assert.equal((await api.request('/nowhere')).status, 404);
      assert.equal(await headgate.stop(), 0);
      const warnings = logLines(headgate).filter(({ level }) => level === 'warn');
      assert.equal(warnings.length, 1, JSON.stringify(warnings));
      assert.match(String(warnings[0]!.message), /^traces could not be sent/);
      assert.doesNotMatch(String(warnings[0]!.cause), /[{}]/);
    } finally {
      await refusing.close();
    }
  });

  it('an unreachable collector does not delay a stop', async () => {
    const away = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_BSP_SCHEDULE_DELAY: '1' };
    const headgate = await startHeadgate(`${folder.folder}/headgate.db`, away);
    const api = apiOf(headgate.url, null);
    for (let count = 0; count < 10; count++) assert.equal((await api.request('/nowhere')).status, 404);
    const stoppedAtMs = performance.now();
    assert.equal(await headgate.stop(), 0);
    assert.ok(performance.now() - stoppedAtMs < 20_000);
    const warnings = logLines(headgate).filter(({ level }) => level === 'warn');
    assert.ok(warnings.length <= 1, JSON.stringify(warnings));
  });

  it('a stop reports the spans that it could not send, and nothing if there are none', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` };
    const stopAfter = async (requests: number) => {
      const headgate = await startHeadgate(`${folder.folder}/headgate.db`, environment);
      const api = apiOf(headgate.url, null);
      for (let count = 0; count < requests; count++) await api.request('/nowhere');
      assert.equal(await headgate.stop(), 0);
      return logLines(headgate).filter(({ level }) => level === 'warn');
    };
    try {
      assert.deepEqual(await stopAfter(0), []);
      const [warning, ...others] = await stopAfter(3);
      assert.deepEqual(others, []);
      const { message, spans, cause } = warning!;
      assert.deepEqual(
        { message, spans, cause },
        {
          message: 'the last spans could not be sent, and are lost',
          spans: 3,
          cause: 'no response within 2 s',
        },
      );
    } finally {
      silent.close();
    }
  });

  it('an invalid variable is reported, and the server serves', async () => {
    for (const [environment, says] of [
      [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, /OTEL_EXPORTER_OTLP_ENDPOINT must be a URL/],
      [sending({ OTEL_TRACES_SAMPLER: 'sometimes' }), /OTEL_TRACES_SAMPLER must be one of/],
      [sending({ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }), /http\/json, not as grpc/],
    ] as const) {
      const headgate = await startHeadgate(`${folder.folder}/headgate.db`, environment);
      assert.equal((await apiOf(headgate.url, null).request('/livez')).status, 200);
      await headgate.stop();
      assert.match(
        logLines(headgate)
          .map(({ message }) => message)
          .join('\n'),
        says,
      );
    }
  });

  it('OpenTelemetry is loaded only with an endpoint, and Prometheus only with a port', async () => {
    const [hooks, loaded] = [`${folder.folder}/hooks.mjs`, `${folder.folder}/loaded.txt`];
    await writeFile(
      hooks,
      `import { appendFileSync } from 'node:fs';
       import { registerHooks } from 'node:module';
       registerHooks({ load(url, context, next) { appendFileSync(${JSON.stringify(loaded)}, url + '\\n'); return next(url, context); } });`,
    );
    const modulesOf = async (environment: Environment): Promise<string> => {
      await writeFile(loaded, '');
      await withServer({ ...environment, NODE_OPTIONS: `--import=${hooks}` }, async ({ url }) => {
        await apiOf(url, null).request('/nowhere', { headers: { traceparent } });
      });
      return readFile(loaded, 'utf8');
    };
    const without = await modulesOf({});
    assert.match(without, /fastify/);
    assert.doesNotMatch(without, /opentelemetry|prom-client/);
    const withBoth = await modulesOf(sending({ HEADGATE_METRICS_PORT: '0' }));
    assert.match(withBoth, /opentelemetry/);
    assert.match(withBoth, /prom-client/);
  });
});
