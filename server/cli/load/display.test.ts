import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Display } from './display.ts';

test('a retry is one sentence, even if its reason is a sentence of the server', () => {
  const lines: string[] = [];
  const io = { out: () => {}, err: (line: string) => lines.push(line), rewrite: () => {}, isTerminal: false };
  const display = new Display(io as unknown as ConstructorParameters<typeof Display>[0], false);
  display.start('shops.csv', 100, 0, null);
  display.retry({ pauseMs: 1000, reason: '429 This key may make 2 requests a second.' });
  assert.deepEqual(lines, ['shops.csv: 429 This key may make 2 requests a second; trying again']);
});
