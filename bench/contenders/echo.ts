// The upper bound for interactions: a bare Fastify server that parses the body, returns it, and stores nothing. The
// server runs with the same V8 settings as Headgate.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import fastify from 'fastify';
import { nodeFlags } from '../../tests/harness/headgate.ts';

export interface RunningEcho {
  readonly port: number;
  stop(): Promise<void>;
}

export async function startEcho(): Promise<RunningEcho> {
  const child: ChildProcess = fork(new URL(import.meta.url), { execArgv: [...nodeFlags] });
  const [port] = (await once(child, 'message')) as [number];
  const exited = once(child, 'exit');
  return {
    port,
    async stop() {
      child.kill();
      await exited;
    },
  };
}

if (import.meta.main) {
  const app = fastify();
  app.post('/user-interactions', (request, reply) => reply.code(201).send(request.body));
  await app.listen({ host: '127.0.0.1', port: 0 });
  process.once('disconnect', () => process.exit());
  process.send!((app.server.address() as AddressInfo).port);
}
