import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RefusalLog } from './refusal-log.ts';

test('the reason of a refusal is reported once a minute for each organisation, in one line', (t) => {
  const reports: string[] = [];
  const refusals = new RefusalLog((line) => reports.push(line));
  let nowMs = 1000;
  t.mock.method(performance, 'now', () => nowMs);
  const refused = 'a query was refused, because the replica cannot be used:';
  refusals.add('o', 'no space\nin file 7a');
  refusals.add('o', 'no space\nin file 10f');
  refusals.add('p', 'no space\nin file 7a');
  refusals.add('o', 'another reason');
  assert.deepEqual(reports.splice(0), [
    `organisation o: ${refused} no space in file 7a`,
    `organisation p: ${refused} no space in file 7a`,
    `organisation o: ${refused} another reason`,
  ]);
  nowMs += 59_999;
  refusals.add('o', 'another reason');
  assert.deepEqual(reports, []);
  nowMs += 1;
  refusals.add('o', 'another reason');
  assert.deepEqual(reports.splice(0), [`organisation o: ${refused} another reason`]);
  for (let reason = 0; reason < 1000; reason++) refusals.add('o', `${'x'.repeat(reason)} is in the way`);
  assert.equal(reports.length, 9);
  refusals.add('p', 'another reason');
  assert.equal(reports.length, 10);
});
