import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EndedRequest } from './ended-request.ts';
import { prettyEvent, prettyRequest } from './pretty.ts';

const ended: EndedRequest = {
  requestId: '01a1dcdf-ebf0-7000-a4b6-67a3c26f0d94',
  traceId: null,
  method: 'POST',
  route: '/v1/data/{type}',
  status: 207,
  isCutOff: false,
  isProbe: false,
  orgId: 'acme',
  keyId: 'k',
  type: 'shops',
  summary: {
    outcome: 'partly_accepted',
    writeMs: 1,
    counts: { received: 3, created: 2, updated: 0, unchanged: 0, rejected: 1 },
  },
  code: null,
  bodyBytes: 10,
  durationMs: 12.3,
};

test('a request is shown in one short line', () => {
  assert.equal(
    prettyRequest('09:30:00.000', ended, false),
    '09:30:00.000 207 POST /v1/data/shops partly accepted: 2 created, 1 rejected acme 12 ms\n',
  );
  assert.equal(
    prettyRequest(
      '09:30:00.000',
      { ...ended, status: null, isCutOff: true, summary: null, durationMs: 1.23 },
      false,
    ),
    '09:30:00.000 --- POST /v1/data/shops cut off acme 1.2 ms\n',
  );
  assert.equal(
    prettyRequest(
      't',
      { ...ended, status: 401, summary: null, code: 'unauthorized', orgId: null, type: null },
      false,
    ),
    't 401 POST /v1/data/{type} unauthorized 12 ms\n',
  );
});

test('the status is coloured if colours are enabled', () => {
  const green = '\u001b[32m201\u001b[39m';
  assert.ok(prettyRequest('t', { ...ended, status: 201 }, true).includes(green));
  assert.ok(prettyRequest('t', { ...ended, status: 503 }, true).includes('\u001b[31m503'));
});

test('an event shows its message and fields, an error its stack, and control characters are escaped', () => {
  const line = prettyEvent(
    't',
    'warn',
    { cause: 'the disk is full', dropped: 3, err: new Error('boom') },
    'no',
    false,
  );
  const [first, second] = line.split('\n');
  assert.equal(first, 't warn no cause=the disk is full dropped=3');
  assert.equal(second, 'Error: boom');
  const nasty = '\u001b[2J';
  const shown = prettyEvent('t', 'warn', { cause: nasty, err: new Error(nasty) }, nasty, false);
  assert.ok(!shown.includes(nasty) && shown.split('\\u001b[2J').length === 4, shown);
});
