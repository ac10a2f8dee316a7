import assert from 'node:assert/strict';
import { test } from 'node:test';
import { markdownReport } from './markdown.ts';
import { ordinary, results, straining } from './testing/sample-results.ts';

/** The tables of the document, as rows of unescaped cells. */
function tablesOf(markdown: string): string[][][] {
  return markdown
    .split('\n\n')
    .map((block) => block.split('\n'))
    .filter((lines) => lines[0]!.startsWith('|'))
    .map((lines) =>
      lines.map((line) =>
        line
          .split(/(?<!\\)\|/)
          .slice(1, -1)
          .map((cell) => cell.trim()),
      ),
    );
}

test('every row of a table has as many cells as its header, whatever text they contain', () => {
  for (const sample of [ordinary, straining]) {
    const tables = tablesOf(markdownReport(sample));
    assert.equal(tables.length, sample.comparisons.length + 3);
    for (const [head, rule, ...rows] of tables) {
      assert.ok(rule!.every((cell) => cell === '---'));
      for (const row of rows) assert.equal(row.length, head!.length, row.join(' | '));
    }
  }
});

test('the report shows figures, comparisons, machine, versions and left-out contenders', () => {
  const markdown = markdownReport(ordinary);
  const rows = tablesOf(markdown).flat();
  const row = (first: string): string[] | undefined => rows.find((cells) => cells[0] === first);
  const textbook = 'Against the textbook service on SQLite';
  assert.deepEqual(row(textbook), [textbook, 'at least 3×', '5.10×', '4.60 to 5.30', 'met', '5']);
  assert.deepEqual(row('Bare node:http'), ['Bare node:http', '1.20 ms', '1.10 to 1.30', '0.379×']);
  assert.deepEqual(row('Processor'), ['Processor', 'Example-1']);
  assert.deepEqual(row('Memory'), ['Memory', '8.00 GiB']);
  assert.deepEqual(row('PostgreSQL'), ['PostgreSQL', '18.1']);
  assert.deepEqual(row('NocoDB'), ['NocoDB', 'its packages could not be installed within 300 s']);
  assert.match(markdown, /^A full run, 2026-02-03 04:05 UTC, took 12 min 34 s\.$/m);
  assert.match(markdown, /```\nnpm run bench\n```/);
  assert.match(markdown, /\[full\.json\]\(full\.json\)/);
});

test('markup in a name is escaped', () => {
  const markdown = markdownReport(straining);
  assert.ok(!markdown.includes('<'));
  assert.match(markdown, /&lt;b&gt;"R&amp;D's" rate&lt;\/b&gt;/);
  assert.match(markdown, /it said: \\\| \\\* \\_failed\\_ \\\| and ended/);
});

test('empty sections are left out', () => {
  const headings = markdownReport(results()).match(/^#+ .*$/gm);
  assert.deepEqual(headings, ['# Benchmark', '## Measured on', '## To repeat it']);
});
