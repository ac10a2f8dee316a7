// Computes the recommendation report: what students did with recommendations and without them, and what they then
// bought. docs/recommendations.md defines each figure.

import type { DuckDBConnection, DuckDBValue } from '@duckdb/node-api';
import type {
  HoldoutComparison,
  OrganicWindowFigures,
  RecommendationsCoverage,
  RecommendationsGroup,
  RecommendationsReport,
  ReportGrouping,
  TouchFigures,
  WindowDays,
  WindowFigures,
} from '@headgate/client/recommendations.ts';
import { windowsDays } from '../analytics-orders.ts';
import type { AsOf } from '../replica.ts';
import { compareWithHoldout, toCents } from './holdout.ts';
import { LEAST_SAMPLE, wilsonInterval } from './intervals.ts';
import { lastClosedDayMs, recommendationsSql, recommendationsValues } from './recommendations-sql.ts';
import { DAY_MS, endOfPeriodMs, type ReportPeriod } from './report-period.ts';

export interface RecommendationsQuery extends ReportPeriod {
  readonly by: ReportGrouping | null;
  /** The name of a segment. */
  readonly holdout: string | null;
}

type Figures = Readonly<Record<string, DuckDBValue>>;

/** Computes the report on a replica. `from` and `to` are valid days, in this order. */
export async function recommendationsReport(
  connection: DuckDBConnection,
  { from, to, by, holdout }: RecommendationsQuery,
  asOf: AsOf,
): Promise<RecommendationsReport> {
  const period = { from, to };
  const values = recommendationsValues(period, Date.parse(asOf.at));
  const reader = await connection.runAndReadAll(recommendationsSql(by), values);
  const rows: readonly Figures[] = reader.getRowObjects();
  const coverage = coverageOf(rows);
  const compared = holdout === null ? null : await compareWithHoldout(connection, period, holdout);
  return {
    from,
    to,
    by,
    as_of: asOf,
    windows_days: windowsDays,
    coverage,
    groups: groupsOf(rows, by),
    holdout: compared,
    notes: [...notesOnData(coverage), ...notesOn(period, Date.parse(asOf.at), compared)],
  };
}

function coverageOf(rows: readonly Figures[]): RecommendationsCoverage {
  const recommended = rows.filter(({ is_recommended }) => is_recommended === true);
  const organic = rows.filter(({ is_recommended }) => is_recommended === false);
  const sum = (name: string, among = rows): number =>
    among.reduce((total, row) => total + figure(row, name), 0);
  const interactions = sum('engagements');
  const touches = sum('touches');
  const withoutStudent = sum('interactions_without_student');
  const transactions = sum('transactions');
  const purchasesWithoutStudent = sum('transactions_without_student');
  const withoutCreated = sum('transactions_without_created');
  return {
    interactions: {
      total: interactions,
      used: touches,
      without_student: withoutStudent,
      other_items: interactions - touches - withoutStudent,
    },
    transactions: {
      total: transactions,
      used: transactions - purchasesWithoutStudent - withoutCreated,
      without_student: purchasesWithoutStudent,
      without_created: withoutCreated,
    },
    service_without_recommendation_id:
      sum('engagements', recommended) - sum('with_recommendation_id', recommended),
    recommendation_id_without_service: sum('with_recommendation_id', organic),
  };
}

function groupsOf(rows: readonly Figures[], by: ReportGrouping | null): readonly RecommendationsGroup[] {
  const figures = rows.filter(({ is_recommended }) => is_recommended !== null);
  const byValue = Map.groupBy(figures, ({ value }) => value as string | null);
  // A report that is not grouped has its one group even if there are no rows.
  if (by === null && byValue.size === 0) byValue.set(null, []);
  return [...byValue].map(([value, ofGroup]) => ({
    ...(by === null ? {} : { [by]: value }),
    recommended: touchFigures(
      ofGroup.find(({ is_recommended }) => is_recommended === true) ?? {},
      by,
      windowFigures,
    ),
    organic: touchFigures(
      ofGroup.find(({ is_recommended }) => is_recommended === false) ?? {},
      by,
      organicWindowFigures,
    ),
  }));
}

function touchFigures<Window extends WindowFigures>(
  row: Figures,
  by: ReportGrouping | null,
  inWindow: (row: Figures, days: WindowDays) => Window,
): TouchFigures<Window> {
  const pageViews = figure(row, 'page_views');
  const hasRatio = pageViews > 0 && by !== 'interaction_type';
  return {
    touches: figure(row, 'touches'),
    engagements: figure(row, 'engagements'),
    students: figure(row, 'students'),
    recommendation_ids: figure(row, 'recommendation_ids'),
    discount_codes_per_page_view: hasRatio ? figure(row, 'discount_codes') / pageViews : null,
    windows: Object.fromEntries(windowsDays.map((days) => [days, inWindow(row, days)])) as Record<
      WindowDays,
      Window
    >,
  };
}

function windowFigures(row: Figures, days: WindowDays): WindowFigures {
  const episodes = figure(row, `episodes_${days}`);
  const converted = figure(row, `converted_${days}`);
  const interval = wilsonInterval(converted, episodes);
  return {
    episodes,
    converted,
    rate: episodes === 0 ? null : converted / episodes,
    rate_low: interval?.low ?? null,
    rate_high: interval?.high ?? null,
    purchases: figure(row, `purchases_${days}`),
    amount: toCents(figure(row, `amount_${days}`)),
    savings: toCents(figure(row, `savings_${days}`)),
    strict_purchases: figure(row, `strict_purchases_${days}`),
  };
}

function organicWindowFigures(row: Figures, days: WindowDays): OrganicWindowFigures {
  return { ...windowFigures(row, days), assisted_purchases: figure(row, `assisted_purchases_${days}`) };
}

function figure(row: Figures, name: string): number {
  return Number(row[name] ?? 0);
}

function notesOnData({ interactions }: RecommendationsCoverage): readonly string[] {
  if (interactions.total > 0) return [];
  return ['There are no interactions in this period. Another one can be chosen with from and to.'];
}

function notesOn(period: ReportPeriod, asOfMs: number, holdout: HoldoutComparison | null): readonly string[] {
  const notes = [
    'Recommendations that were shown but not followed are not in the data, so this report has no click-through rate.',
    'The difference between recommended and organic is not the effect of recommendations: students who follow one ' +
      'may have been more likely to buy. Only a holdout measures the effect.',
    'Amounts are added up as they were uploaded, whatever their currency.',
  ];
  const lastDayMs = endOfPeriodMs(period) - DAY_MS;
  for (const days of windowsDays) {
    const closedMs = lastClosedDayMs(days, asOfMs);
    if (closedMs >= lastDayMs) continue;
    const firstOpenDay = new Date(closedMs + DAY_MS).toISOString().slice(0, 10);
    const since = firstOpenDay <= period.from ? 'in this period' : `from ${firstOpenDay} on`;
    notes.push(`Rates within ${inDays(days)} leave out the episodes ${since}: their window is still open.`);
  }
  if (holdout !== null) notes.push(...notesOnHoldout(holdout));
  return notes;
}

function notesOnHoldout(holdout: HoldoutComparison): readonly string[] {
  const notes = [
    `The comparison with the holdout is fair only if ${holdout.segment} is a random sample of all customers.`,
  ];
  const sizes = [holdout.with_recommendations.students, holdout.without_recommendations.students];
  if (Math.min(...sizes) < LEAST_SAMPLE) {
    notes.push(`The difference has no interval, because that takes ${LEAST_SAMPLE} students on each side.`);
  }
  if (holdout.served_by_mistake > 0) {
    notes.push(
      'Some members of the holdout were served by mistake. They still count as without recommendations, so the ' +
        'difference is probably smaller than the effect.',
    );
  }
  return notes;
}

function inDays(days: WindowDays): string {
  return days === 1 ? '1 day' : `${days} days`;
}
