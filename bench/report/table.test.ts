import assert from 'node:assert/strict';
import { test } from 'node:test';
import { terminalReport } from './table.ts';
import { comparison, figure, ordinary, results, series, straining } from './testing/sample-results.ts';

const LAST_COLUMN = /^(.*?) {2,}(\S+)$/;

test('no line is longer than 110 characters or ends in spaces, whatever is reported', () => {
  for (const sample of [ordinary, straining, results()]) {
    for (const line of terminalReport(sample).split('\n')) {
      assert.ok([...line].length <= 110, line);
      assert.equal(line, line.trimEnd());
    }
  }
});

test('each figure is shown with bound, median, spread and verdict, under their column heads', () => {
  const lines = terminalReport(ordinary).split('\n');
  const head = lines.find((line) => line.startsWith('Figure'))!;
  const met = lines.find((line) => line.startsWith('Against the textbook'))!;
  assert.deepEqual(met.split(/ {2,}/).slice(1), ['at least 3×', '5.10×', '4.60 to 5.30', 'met']);
  const missed = lines.find((line) => line.includes('at least 0.9×'))!;
  assert.equal(missed.indexOf('missed'), head.indexOf('Verdict'));
  assert.equal(met.indexOf('at least'), head.indexOf('Bound'));
  assert.equal(met.indexOf('5.10×') + '5.10×'.length, head.indexOf('Median') + 'Median'.length);
  assert.ok(lines.includes('4 of 5 bounds met'));
});

test('a title that is too long is wrapped within its column, without losing a word', () => {
  const title = Array.from({ length: 40 }, (_, n) => `word${n}`).join(' ');
  const report = terminalReport(results({ figures: [figure([1], { atLeast: 1 }, { title })] }));
  const firstColumn = report
    .split('\n')
    .filter((line) => line.startsWith('word'))
    .map((line) => line.split(/ {2,}/)[0]);
  assert.equal(firstColumn.join(' '), title);
});

test('contenders are compared with the first one, round by round', () => {
  const all = [series('Headgate', [100, 200, 400]), series('Other', [50, 20, 400])];
  const lines = terminalReport(results({ comparisons: [comparison(all)] })).split('\n');
  const ratioOf = (contender: string): string | undefined =>
    LAST_COLUMN.exec(lines.find((line) => line.startsWith(contender))!)?.[2];
  assert.equal(ratioOf('Headgate'), '1.00×');
  // The ratios of the rounds are 0.5, 0.1 and 1; the ratio of the medians would be 0.25.
  assert.equal(ratioOf('Other'), '0.500×');
});

test('a left-out contender is named with the reason, and a smoke run is marked as one', () => {
  assert.match(terminalReport(ordinary), /\nLeft out\n {2}NocoDB: its packages could not be installed/);
  assert.match(terminalReport(straining), /^a smoke run.*its numbers mean nothing\n/);
  assert.doesNotMatch(terminalReport(ordinary), /mean nothing/);
  assert.ok(!terminalReport(straining).includes('\u001b'));
});
