import assert from 'node:assert/strict';
import { test } from 'node:test';
import fastify from 'fastify';
import { staticContent } from './cached-content.ts';

test('content that could not be generated is generated at the next request, and then cached', async (t) => {
  let attempts = 0;
  const make = async () => {
    attempts++;
    if (attempts === 1) throw new Error('too many open files');
    return { type: 'text/plain', text: `made at attempt ${attempts}` };
  };
  const app = fastify();
  t.after(() => app.close());
  app.get('/', staticContent(make));
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const answers = [await fetch(url), await fetch(url), await fetch(url)];
  assert.deepEqual(
    answers.map(({ status }) => status),
    [500, 200, 200],
  );
  assert.equal(await answers[1]!.text(), 'made at attempt 2');
  assert.equal(await answers[2]!.text(), 'made at attempt 2');
});
