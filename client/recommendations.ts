// The parameters of the recommendation report, and its response, which the server builds with these types.
// docs/recommendations.md defines each figure.

import type { ReadOptions } from './connection.ts';
import type { AsOf } from './sql.ts';

/** What the report can be grouped by. */
export type ReportGrouping = 'item_type' | 'day' | 'platform' | 'interaction_type';

/** How long after a touch a purchase is credited to it, in days. */
export type WindowDays = 1 | 7 | 30;

export interface RecommendationsFilters {
  /** The first day, in UTC, such as 2026-03-02. Default: 29 days before `to`. */
  from?: string | undefined;
  /** The last day, in UTC. Default: today. */
  to?: string | undefined;
  /** Splits the report into groups. Default: one group. */
  by?: ReportGrouping | undefined;
  /** The name of a segment that gets no recommendations, to compare it with all other customers. */
  holdout?: string | undefined;
}

export interface RecommendationsOptions extends RecommendationsFilters, ReadOptions {}

/** What was bought within a window after a touch. */
export interface WindowFigures {
  readonly episodes: number;
  readonly converted: number;
  /** Null if there are no episodes. */
  readonly rate: number | null;
  /** The limits of the 95 % interval of the rate. */
  readonly rate_low: number | null;
  readonly rate_high: number | null;
  readonly purchases: number;
  readonly amount: number;
  readonly savings: number;
  readonly strict_purchases: number;
}

export interface OrganicWindowFigures extends WindowFigures {
  readonly assisted_purchases: number;
}

/** What students did, and what they bought within each window. */
export interface TouchFigures<Window extends WindowFigures> {
  readonly touches: number;
  readonly engagements: number;
  readonly students: number;
  readonly recommendation_ids: number;
  /** Null if there are no page views, or if the report is grouped by the type of interaction. */
  readonly discount_codes_per_page_view: number | null;
  readonly windows: Readonly<Record<WindowDays, Window>>;
}

/** A group has its value under the name of the grouping, if there is one. The value of a platform can be null. */
export type RecommendationsGroup = { readonly [Name in ReportGrouping]?: string | null } & {
  readonly recommended: TouchFigures<WindowFigures>;
  readonly organic: TouchFigures<OrganicWindowFigures>;
};

/** How many interactions and transactions of the period are used, and why others are not. */
export interface RecommendationsCoverage {
  readonly interactions: {
    readonly total: number;
    readonly used: number;
    readonly without_student: number;
    readonly other_items: number;
  };
  readonly transactions: {
    readonly total: number;
    readonly used: number;
    readonly without_student: number;
    readonly without_created: number;
  };
  readonly service_without_recommendation_id: number;
  readonly recommendation_id_without_service: number;
}

export interface HoldoutStudents {
  readonly students: number;
  readonly purchases: number;
  readonly amount: number;
  /** Null if there are no students. */
  readonly purchases_per_student: number | null;
  readonly amount_per_student: number | null;
}

/** The value with recommendations minus the value without. The limits are null if there are too few students. */
export interface HoldoutDifference {
  readonly value: number | null;
  readonly low: number | null;
  readonly high: number | null;
}

/** Compares the students who get recommendations with a segment of students who get none. */
export interface HoldoutComparison {
  readonly segment: string;
  /** How many members of the segment have an interaction with a recommendation in the period. */
  readonly served_by_mistake: number;
  readonly with_recommendations: HoldoutStudents;
  readonly without_recommendations: HoldoutStudents;
  readonly difference: {
    readonly purchases_per_student: HoldoutDifference;
    readonly amount_per_student: HoldoutDifference;
  };
}

export interface RecommendationsReport {
  /** The first and the last day, in UTC. */
  readonly from: string;
  readonly to: string;
  readonly by: ReportGrouping | null;
  readonly as_of: AsOf;
  readonly windows_days: readonly WindowDays[];
  readonly coverage: RecommendationsCoverage;
  /** One group if `by` is null. */
  readonly groups: readonly RecommendationsGroup[];
  readonly holdout: HoldoutComparison | null;
  /** Sentences on what the figures do not say. */
  readonly notes: readonly string[];
}
