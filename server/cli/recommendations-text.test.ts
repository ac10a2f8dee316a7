import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type {
  OrganicWindowFigures,
  RecommendationsReport,
  TouchFigures,
} from '@headgate/client/recommendations.ts';
import fc from 'fast-check';
import { recommendationsText } from './recommendations-text.ts';

function windowOf(episodes: number, converted: number): OrganicWindowFigures {
  return {
    episodes,
    converted,
    rate: episodes === 0 ? null : converted / episodes,
    rate_low: episodes === 0 ? null : 0.01,
    rate_high: episodes === 0 ? null : 0.9,
    purchases: 1234,
    amount: 9876.5,
    savings: 12,
    strict_purchases: 5,
    assisted_purchases: 77,
  };
}

function figuresOf(episodes: number, converted: number): TouchFigures<OrganicWindowFigures> {
  const window = windowOf(episodes, converted);
  return {
    touches: 100,
    engagements: 2000,
    students: 50,
    recommendation_ids: 40,
    discount_codes_per_page_view: 0.125,
    windows: { 1: window, 7: window, 30: window },
  };
}

function withoutAssisted(figures: TouchFigures<OrganicWindowFigures>): TouchFigures<OrganicWindowFigures> {
  const { assisted_purchases: _, ...window } = figures.windows[1];
  return { ...figures, windows: { 1: window, 7: window, 30: window } as typeof figures.windows };
}

const report: RecommendationsReport = {
  from: '2026-03-01',
  to: '2026-03-31',
  by: null,
  as_of: { seq: 1, at: '2026-05-01T00:00:00Z', complete: true },
  windows_days: [1, 7, 30],
  coverage: {
    interactions: { total: 4000, used: 200, without_student: 1800, other_items: 2000 },
    transactions: { total: 3000, used: 2500, without_student: 400, without_created: 100 },
    service_without_recommendation_id: 3,
    recommendation_id_without_service: 0,
  },
  groups: [{ recommended: withoutAssisted(figuresOf(80, 20)), organic: figuresOf(80, 40) }],
  holdout: null,
  notes: ['This sentence says something that is long enough to be wrapped on a narrow terminal.'],
};

const byPlatform: RecommendationsReport = {
  ...report,
  by: 'platform',
  groups: [
    { platform: 'IOS', ...report.groups[0]! },
    { platform: null, ...report.groups[0]! },
  ],
};

const withHoldout: RecommendationsReport = {
  ...report,
  holdout: {
    segment: 'control',
    served_by_mistake: 2,
    with_recommendations: {
      students: 9000,
      purchases: 4500,
      amount: 90_000,
      purchases_per_student: 0.5,
      amount_per_student: 10,
    },
    without_recommendations: {
      students: 1000,
      purchases: 400,
      amount: 8000,
      purchases_per_student: 0.4,
      amount_per_student: 8,
    },
    difference: {
      purchases_per_student: { value: 0.1, low: 0.05, high: 0.15 },
      amount_per_student: { value: 2, low: null, high: null },
    },
  },
};

describe('the report for a terminal', () => {
  it('shows all figures and bars on a wide terminal', () => {
    assert.deepEqual(recommendationsText(report, 130).slice(0, 13), [
      'From 2026-03-01 to 2026-03-31, in UTC. State of the data: 2026-05-01T00:00:00Z.',
      '',
      'Interactions: 4,000, of which 200 are used, 1,800 have no student and 2,000 are with other items than shops and offers.',
      'Transactions: 3,000, of which 2,500 are used, 400 have no student and 100 have no time.',
      'Interactions with the source SERVICE and no recommendation id: 3.',
      '',
      'INTERACTIONS  ENGAGEMENTS  TOUCHES  STUDENTS  RECOMMENDATIONS  CODES PER VIEW',
      'recommended         2,000      100        50               40           0.125',
      'organic             2,000      100        50               40           0.125',
      '',
      'Purchases within 1 day after a touch:',
      'INTERACTIONS  EPISODES  CONVERTED  PURCHASES    AMOUNT  SAVINGS  STRICT  ASSISTED     RATE     95 % INTERVAL',
      'recommended         80         20      1,234  9,876.50    12.00       5            25.00 %  1.00 % – 90.00 %  ██████████░░░░░░░░░░',
    ]);
  });

  it('leaves out the less important columns on a narrow terminal, and names them', () => {
    const text = recommendationsText(report, 60);
    assert.ok(text.some((line) => /^INTERACTIONS {2}EPISODES +RATE +95 % INTERVAL$/.test(line)));
    assert.match(text.slice(-5).join(' '), /Left out.*savings, *strict, *assisted/);
    assert.ok(!recommendationsText(report, 130).some((line) => line.includes('Left out')));
  });

  it('fits the width from 50 characters on, and always has a bar', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 50, max: 200 }),
        fc.constantFrom(report, byPlatform, withHoldout),
        (width, shownReport) => {
          const text = recommendationsText(shownReport, width);
          for (const line of text) assert.ok([...line].length <= width, `${width}: ${line}`);
          assert.equal(text.filter((line) => line.includes('█')).length, shownReport.groups.length * 6);
        },
      ),
    );
  });

  it('shows the rates on a terminal of any width, even if the tables do not fit', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 50 }),
        fc.constantFrom(report, byPlatform, withHoldout),
        (width, shownReport) => {
          const rows = recommendationsText(shownReport, width).filter((line) => / \d+\.\d\d %/.test(line));
          assert.ok(rows.length >= shownReport.groups.length * 6);
        },
      ),
    );
  });

  it('draws the largest rate as a full bar, and half of it as a half bar', () => {
    const bars = recommendationsText(report, 60)
      .map((line) => /[█░]+$/.exec(line)?.[0])
      .filter((bar) => bar !== undefined);
    const [first, second] = bars;
    assert.match(second!, /^█+$/);
    assert.equal(first!.length, second!.length);
    assert.equal(first!.replaceAll('░', '').length, Math.round(second!.length / 2));
  });

  it('shows the value of each group once', () => {
    const text = recommendationsText(byPlatform, 130);
    const rows = text.slice(text.findIndex((line) => line.startsWith('PLATFORM')) + 1);
    assert.deepEqual(
      rows.slice(0, 4).map((line) => line.slice(0, 23).trimEnd()),
      ['IOS       recommended', '          organic', '(none)    recommended', '          organic'],
    );
  });

  it('shows a dash instead of a rate if there are no episodes', () => {
    const none = { recommended: figuresOf(0, 0), organic: figuresOf(0, 0) };
    const text = recommendationsText({ ...report, groups: [none] }, 130);
    const row = text[text.indexOf('Purchases within 1 day after a touch:') + 2]!;
    assert.match(row, / –$/);
  });

  it('says if there are no groups, and if the data are not complete', () => {
    const text = recommendationsText(
      { ...report, by: 'day', groups: [], as_of: { ...report.as_of, complete: false } },
      130,
    );
    assert.ok(text.includes('There are no interactions and no purchases after them.'));
    assert.match(text[0]!, /later uploads are not included yet\.$/);
  });

  it('shows the holdout', () => {
    const text = recommendationsText(withHoldout, 130);
    const start = text.indexOf('Holdout control:');
    assert.deepEqual(text.slice(start + 1, start + 7), [
      'RECOMMENDATIONS  STUDENTS  PURCHASES EACH  AMOUNT EACH',
      'with                9,000             0.5           10',
      'without             1,000             0.4            8',
      'Difference in purchases: 0.1 (95 % interval: 0.05 to 0.15).',
      'Difference in amount: 2.',
      'Members who were served by mistake: 2.',
    ]);
  });
});
