import assert from 'node:assert/strict';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { runHeadgate } from './run.ts';

async function ready(
  env: Record<string, string>,
  ...args: string[]
): Promise<{ exitCode: number; out: string[]; err: string[] }> {
  const out: string[] = [];
  const err: string[] = [];
  const exitCode = await runHeadgate(['ready', ...args], {
    out: (line) => out.push(line),
    err: (line) => err.push(line),
    isTerminal: false,
    rewrite: (text) => err.push(text),
    env,
    nowMs: Date.now,
  });
  return { exitCode, out, err };
}

/** Starts a plain HTTP server instead of Headgate. The responses of a real server have their own tests. */
async function listening(
  t: TestContext,
  listener: RequestListener,
): Promise<{ port: string; server: Server }> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return { port: String((server.address() as AddressInfo).port), server };
}

test('a ready server is reported with exit code 0', async (t) => {
  const paths: (string | undefined)[] = [];
  const { port } = await listening(t, ({ url }, response) => {
    paths.push(url);
    response.end();
  });
  assert.deepEqual(await ready({ HEADGATE_PORT: port }), { exitCode: 0, out: ['ready'], err: [] });
  assert.deepEqual((await ready({}, '--port', port)).exitCode, 0);
  const everywhere = { HEADGATE_HOST: '0.0.0.0', HEADGATE_BEHIND_PROXY: 'true', HEADGATE_PORT: port };
  assert.deepEqual((await ready(everywhere)).exitCode, 0);
  assert.deepEqual(paths, ['/readyz', '/readyz', '/readyz']);
});

test('a server that responds with 503 is reported as not ready, exit code 1', async (t) => {
  const { port } = await listening(t, (_, response) => response.writeHead(503).end());
  assert.deepEqual(await ready({ HEADGATE_PORT: port }), {
    exitCode: 1,
    out: [],
    err: [`headgate: the server at http://127.0.0.1:${port} is not ready: it answered 503`],
  });
});

test('a port without a server is reported with one sentence, exit code 1', async (t) => {
  const { port, server } = await listening(t, (_, response) => response.end());
  await new Promise((resolve) => server.close(resolve));
  const { exitCode, out, err } = await ready({ HEADGATE_PORT: port });
  assert.deepEqual([exitCode, out, err.length], [1, [], 1]);
  assert.match(
    err[0]!,
    new RegExp(`^headgate: no server answers at http://127\\.0\\.0\\.1:${port}: .*ECONNREFUSED`),
  );
});

test('invalid settings are refused, exit code 2', async () => {
  const { exitCode, err } = await ready({ HEADGATE_PORT: 'http' });
  assert.deepEqual([exitCode, err.length], [2, 1]);
});

test('port 0 is refused, exit code 2', async () => {
  for (const [env, ...args] of [[{ HEADGATE_PORT: '0' }], [{}, '--port', '0']] as const) {
    assert.deepEqual(await ready(env, ...args), {
      exitCode: 2,
      out: [],
      err: [
        'headgate: port 0 lets the server pick a free port, which is not known here; use --port with the port that ' +
          'it printed when it started',
      ],
    });
  }
});
