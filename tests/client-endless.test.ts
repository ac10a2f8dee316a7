// Responses that never end: the client and the commands read only a limited part of them, and say so.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { HeadgateClient, ResponseTooLargeError, UploadInterruptedError } from '@headgate/client/client.ts';
import { type EndlessServer, startEndlessServer } from './harness/endless-server.ts';
import { loadFolder } from './harness/loading.ts';
import { leastRecord } from './harness/records.ts';
import { rejected } from './harness/rejected.ts';
import { waitUntil } from './harness/waiting.ts';

const MIB = 1024 * 1024;

describe('a response that never ends', () => {
  let server: EndlessServer;
  before(async () => {
    server = await startEndlessServer('/v1/data/shops/');
  });
  after(() => server.close());

  /** Resolves to the paths of the requests that `use` makes. Their connections must be closed after 128 MiB. */
  async function readInPart(use: () => Promise<unknown>): Promise<readonly string[]> {
    const [firstRequest, firstByte] = [server.begun.length, server.sentBytes()];
    await use();
    await waitUntil('the connection is closed', () => server.open() === 0);
    const readBytes = server.sentBytes() - firstByte;
    assert.ok(readBytes > 128 * MIB && readBytes < 192 * MIB, `${readBytes} bytes`);
    return server.begun.slice(firstRequest).map((path) => path.replace(/\?.*/, ''));
  }

  const newClient = (): HeadgateClient => new HeadgateClient({ url: server.url, apiKey: 'hg_a_b' });

  test('ends the iteration over changes, without another request', async () => {
    const requests = await readInPart(async () => {
      const { message } = await rejected(Array.fromAsync(newClient().changes()), ResponseTooLargeError);
      const expected =
        `${server.url}/v1/changes responded with more than 128 MiB, which the client does not keep in memory; ` +
        'check that this is the address of Headgate, or request less at once';
      assert.equal(message, expected);
    });
    assert.deepEqual(requests, ['/v1/changes']);
  });

  test('interrupts an upload', async () => {
    const requests = await readInPart(async () => {
      const upload = newClient().upload('tags', [leastRecord('tags')] as never);
      const { cause, nextIndex } = await rejected(upload, UploadInterruptedError);
      assert.ok(cause instanceof ResponseTooLargeError);
      assert.equal(nextIndex, 0);
    });
    assert.deepEqual(requests, ['/v1/data/tags']);
  });

  test('does not end a stream, which is not kept in memory', async () => {
    const { stream } = await newClient().sqlStream('SELECT 1', [], 'csv');
    let readBytes = 0;
    for await (const piece of stream) {
      readBytes += piece.length;
      if (readBytes > 150 * MIB) break;
    }
    await waitUntil('the connection is closed', () => server.open() === 0);
  });

  test('ends `headgate changes --follow` and `headgate export` with an error', async (t) => {
    const folder = await loadFolder(t, { HEADGATE_URL: server.url, HEADGATE_KEY: 'hg_a_b' });
    for (const [path, ...args] of [
      ['/v1/changes', 'changes', '--after', '0', '--follow'],
      ['/v1/data/tags', 'export', 'tags'],
    ] as const) {
      const requests = await readInPart(async () => {
        const { exitCode, out, err } = await folder.run(...args);
        assert.deepEqual([exitCode, out], [1, ''], err);
        assert.match(
          err,
          /^headgate: http:.* responded with more than 128 MiB.*; check that this is the address/,
        );
      });
      assert.deepEqual(requests, [path]);
    }
  });
});
