import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MemberExplanation, Segment } from '@headgate/client/segments.ts';
import { explanationText, listText, previewText, segmentText } from './segments-text.ts';

const now = '2026-03-10T12:00:00Z';
const nowMs = Date.parse(now);
const as_of = { seq: 7, at: now, complete: false };

const segment: Segment = {
  name: 'regulars',
  note: 'a\u001b[31mb',
  count: 1234,
  created_at: '2026-01-01T00:00:00.123Z',
  saved_at: '2026-03-10T09:00:00Z',
  evaluation: { at: '2026-03-10T11:57:30Z', ms: 1500, entered: 3, left: 2 },
  failure: { at: '2026-03-10T11:59:50Z', message: 'It took\u0007 too long.' },
  latest: 9,
  condition: { segment: 'others' },
  used_by: ['first', 'second'],
};

test('a list shows ages, and why an evaluation failed', () => {
  const waiting = { ...segment, name: 'new', count: 0, evaluation: null, failure: null };
  assert.deepEqual(listText([segment, waiting], nowMs), [
    'NAME      MEMBERS  EVALUATED  TOOK      ENTERED  LEFT  FAILED',
    'regulars  1,234    2 min ago  1,500 ms  3        2     10 s ago: It took\\u0007 too long.',
    'new       0        never',
  ]);
  const ahead = {
    ...segment,
    failure: null,
    evaluation: { ...segment.evaluation!, at: '2026-03-10T12:00:09Z' },
  };
  assert.match(listText([ahead], nowMs)[1]!, / 0 s ago /);
});

test('a segment shows its facts, its failure and its condition', () => {
  assert.deepEqual(segmentText(segment, nowMs, 80), [
    'Name       regulars',
    'Note       a\\u001b[31mb',
    'Members    1,234',
    'Created    2026-01-01T00:00:00Z (68 d ago)',
    'Saved      2026-03-10T09:00:00Z (3 h ago)',
    'Evaluated  2026-03-10T11:57:30Z (2 min ago), in 1,500 ms',
    '           3 entered, 2 left',
    'Failed     2026-03-10T11:59:50Z (10 s ago): It took\\u0007 too long.',
    '           The members are those of the evaluation before.',
    'Used by    first, second',
    '',
    'segment others',
  ]);
});

test('a preview says what it has not seen, and shows a few of many customers', () => {
  const preview = { count: 2000, nodes: [{ path: '', count: 2000 }], sample: ['a', 'b'], ms: 5, as_of };
  assert.deepEqual(previewText(segment.condition, preview, 80), [
    'CUSTOMERS                CONDITION',
    '    2,000  ████████████  segment others',
    '',
    '2,000 customers, in 5 ms, as of entry 7; later uploads are not included yet',
    '',
    'Some of them:',
    '  a',
    '  b',
  ]);
  const early = { ...preview, as_of: { ...as_of, seq: 0 } };
  assert.equal(
    previewText(segment.condition, early, 80)[3],
    '2,000 customers, in 5 ms, as of entry 0; the copy of the data is still being made, so a part of the data is ' +
      'missing; try again later',
  );
  const empty = { ...preview, count: 0, nodes: [{ path: '', count: 0 }], sample: [] };
  assert.equal(previewText(segment.condition, empty, 80)[1], '        0  ░░░░░░░░░░░░  segment others');
});

test('an explanation tells the condition from the membership, and escapes and cuts what was seen', () => {
  const explanation: MemberExplanation = {
    member: false,
    since: '2026-03-09T12:00:00.5Z',
    nodes: [
      { path: '', holds: false, saw: null },
      { path: 'all[0]', holds: true, saw: `\u001b${'x'.repeat(50)}` },
      { path: 'all[1]', holds: false, saw: 12.3456789 },
      { path: 'all[2]', holds: false, saw: null },
    ],
    as_of: { ...as_of, complete: true },
  };
  const condition = {
    all: [{ customer: 'gender', exists: true }, { sample: { percent: 5, salt: '' } }, { segment: 'others' }],
  };
  const [sentence, , ...tree] = explanationText('regulars', condition, explanation, 100);
  assert.equal(
    sentence,
    'The customer has been a member of regulars since 2026-03-09T12:00:00Z, but will leave at the next',
  );
  assert.deepEqual(tree.slice(-4), [
    `no     ${' '.repeat(40)}  all of`,
    `yes    \\u001b${'x'.repeat(33)}…    customer gender exists`,
    `no     12.345679${' '.repeat(31)}    sample of 5 % with the salt ""`,
    `no     ${' '.repeat(40)}    segment others`,
  ]);
});
