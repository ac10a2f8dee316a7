// Computes the example of docs/recommendations.md from the tables of the page, and compares the figures in the page.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { before, describe, it } from 'node:test';
import type { RecommendationsReport } from '@headgate/client/recommendations.ts';
import { reportGroupings, windowsDays } from '../analytics-orders.ts';
import { LEAST_SAMPLE } from './intervals.ts';
import { recommendationsReport } from './recommendations.ts';
import { newTestReplica, setRows } from './test-replica.ts';

const page = await readFile(new URL('../../../docs/recommendations.md', import.meta.url), 'utf8');

type Row = Readonly<Record<string, string>>;

/** Returns the rows of the table with these headings. */
function tableWith(...headings: readonly string[]): readonly Row[] {
  const lines = page.split('\n');
  const start = lines.indexOf(`| ${headings.join(' | ')} |`);
  assert.notEqual(start, -1, `there is no table of ${headings.join(', ')}`);
  const end = lines.findIndex((line, at) => at > start && !line.startsWith('|'));
  const [names, , ...rows] = lines.slice(start, end).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll('`', '')),
  );
  return rows.map((cells) => Object.fromEntries(names!.map((name, at) => [name, cells[at]!])));
}

const ids = new Map<string, string>();

/** Returns the same id for the same name, and null for no name. */
function idOf(name: string): string | null {
  if (name === '') return null;
  if (!ids.has(name)) ids.set(name, `00000000-0000-4000-8000-${String(ids.size).padStart(12, '0')}`);
  return ids.get(name)!;
}

function momentOf(text: string): string {
  return `${text.replace(' ', 'T')}:00Z`;
}

async function reportOfPage(): Promise<RecommendationsReport> {
  const connection = await newTestReplica();
  const interactions = tableWith('Time', 'Student', 'Type', 'Item', 'Source', 'Recommendation');
  await setRows(
    connection,
    'interactions',
    interactions.map((row, at) => {
      const [itemType, item] = row.Item!.split(' ');
      return {
        interaction_id: idOf(`interaction ${at}`),
        occurred_at: momentOf(row.Time!),
        student_id: idOf(row.Student!),
        interaction_type: row.Type!,
        item_type: itemType!,
        item_id: idOf(item!),
        source: row.Source === '' ? null : row.Source!,
        recommendation_id: idOf(row.Recommendation!),
      };
    }),
  );
  await setRows(
    connection,
    'transactions',
    tableWith('Created', 'Customer', 'Shop', 'Offer', 'Amount', 'Savings').map((row, at) => ({
      transaction_id: idOf(`transaction ${at}`),
      created: momentOf(row.Created!),
      student_id: idOf(row.Customer!),
      shop_id: idOf(row.Shop!),
      offer_id: idOf(row.Offer!),
      amount: Number(row.Amount),
      savings: Number(row.Savings),
      is_deleted: false,
    })),
  );
  const [, offer, shop] = /(\w+) is an offer of the shop (\w+)\./.exec(page)!;
  await setRows(connection, 'offers', [{ offer_id: idOf(offer!), shop_id: idOf(shop!) }]);
  const students = new Set(interactions.map((row) => row.Student!).filter((name) => name !== ''));
  await setRows(
    connection,
    'customers',
    [...students].map((name) => ({ customer_id: idOf(name), is_deleted: false })),
  );
  const [, from, to, day] = /covers ([\d-]+) to ([\d-]+), and is made on ([\d-]+)\./.exec(page)!;
  const [, member] = /the segment has one member, (\w+):/.exec(page)!;
  await setRows(connection, 'segment_members', [{ segment: 'holdout', customer_id: idOf(member!) }]);
  return recommendationsReport(
    connection,
    { from: from!, to: to!, by: null, holdout: 'holdout' },
    { seq: 1, at: `${day}T00:00:00Z`, complete: true },
  );
}

/** Returns the figures of an object by their paths, with four decimals at most. */
function figuresOf(value: object, path = ''): ReadonlyMap<string, number | null> {
  return new Map(
    Object.entries(value).flatMap(([name, inner]: [string, unknown]) => {
      if (typeof inner === 'string') return [];
      if (typeof inner === 'object' && inner !== null) return [...figuresOf(inner, `${path}${name}.`)];
      return [[`${path}${name}`, inner === null ? null : Number((inner as number).toFixed(4))] as const];
    }),
  );
}

describe('docs/recommendations.md', () => {
  let report: RecommendationsReport;
  before(async () => {
    report = await reportOfPage();
  });

  const numbersIn = (rows: readonly Row[], column: string): ReadonlyMap<string, number> =>
    new Map(
      rows.filter((row) => row[column] !== '').map((row) => [row.Figure!, Number(row[column])] as const),
    );

  it('shows the coverage of its example', () => {
    assert.deepEqual(numbersIn(tableWith('Figure', 'Value', 'Meaning'), 'Value'), figuresOf(report.coverage));
  });

  const windowHeadings = ['Recommended', 'Organic'].flatMap((kind) =>
    windowsDays.map((days) => `${kind} ${days}`),
  );
  for (const kind of ['recommended', 'organic'] as const) {
    const heading = kind === 'recommended' ? 'Recommended' : 'Organic';
    it(`shows the ${kind} engagement of its example`, () => {
      const { windows: _, ...figures } = report.groups[0]![kind];
      const shown = numbersIn(tableWith('Figure', 'Recommended', 'Organic', 'Meaning'), heading);
      assert.deepEqual([...shown].sort(), [...figuresOf(figures)].sort());
    });

    for (const days of windowsDays) {
      it(`shows the ${kind} purchases of its example within ${days} days`, () => {
        const shown = numbersIn(tableWith('Figure', ...windowHeadings), `${heading} ${days}`);
        assert.deepEqual(shown, figuresOf(report.groups[0]![kind].windows[days]));
      });
    }
  }

  it('shows the holdout of its example', () => {
    const figures = [...figuresOf(report.holdout!)].filter(([, value]) => value !== null).sort();
    assert.deepEqual([...numbersIn(tableWith('Figure', 'Value'), 'Value')].sort(), figures);
  });

  it('explains every field of the response', () => {
    const named = (name: string): boolean =>
      new RegExp(`\`(?:[\\w.]+\\.)?${name}(?:\\.[\\w.]+)?\``).test(page);
    const fieldsOf = (value: unknown): readonly string[] =>
      typeof value !== 'object' || value === null || Array.isArray(value)
        ? []
        : Object.entries(value).flatMap(([name, inner]) => [name, ...fieldsOf(inner)]);
    const { groups, as_of: _, ...rest } = report;
    const fields = new Set([
      ...fieldsOf(rest),
      'groups',
      'as_of',
      ...fieldsOf(groups[0]),
      ...reportGroupings,
    ]);
    // The windows are named by their length.
    const missing = [...fields].filter((name) => !/^\d+$/.test(name) && !named(name));
    assert.deepEqual(missing, []);
  });

  it('names the windows and the least number of students', () => {
    assert.match(page, new RegExp(`${windowsDays.slice(0, -1).join(', ')} or ${windowsDays.at(-1)} days`));
    assert.match(page, new RegExp(`fewer than ${LEAST_SAMPLE} students`));
  });
});
