// Compares the purchases of the students who get recommendations with those of a holdout: a segment of students who get
// none.

import type { DuckDBConnection, DuckDBValue } from '@duckdb/node-api';
import type {
  HoldoutComparison,
  HoldoutDifference,
  HoldoutStudents,
} from '@headgate/client/recommendations.ts';
import { differenceInterval, type Sample } from './intervals.ts';
import { endOfPeriodMs, type ReportPeriod, startOfDayMs, timestampValue } from './report-period.ts';

/** Every customer counts, also those without purchases. Members who were served by mistake remain in the holdout. */
const holdoutSql = `
WITH
members AS (SELECT customer_id FROM segment_members WHERE segment = $segment),
bought AS (
  SELECT student_id, count(*) AS purchases, fsum(amount) AS amount
  FROM transactions
  WHERE is_deleted IS NOT TRUE AND student_id IS NOT NULL AND created >= $period_from AND created < $period_to
  GROUP BY student_id
),
served AS (
  SELECT DISTINCT student_id FROM interactions
  WHERE source = 'SERVICE' AND student_id IS NOT NULL AND occurred_at >= $period_from AND occurred_at < $period_to
)
SELECT members.customer_id IS NOT NULL AS is_holdout, count(*) AS students, count(served.student_id) AS served,
  coalesce(sum(purchases), 0) AS purchases, coalesce(fsum(amount), 0) AS amount,
  var_samp(coalesce(purchases, 0)) AS purchases_variance, var_samp(coalesce(amount, 0)) AS amount_variance
FROM customers
LEFT JOIN members ON members.customer_id = customers.customer_id
LEFT JOIN bought ON bought.student_id = customers.customer_id
LEFT JOIN served ON served.student_id = customers.customer_id
WHERE customers.is_deleted IS NOT TRUE
GROUP BY is_holdout`;

interface Arm extends HoldoutStudents {
  readonly served: number;
  readonly purchasesVariance: number;
  readonly amountVariance: number;
}

export async function compareWithHoldout(
  connection: DuckDBConnection,
  period: ReportPeriod,
  segment: string,
): Promise<HoldoutComparison> {
  const reader = await connection.runAndReadAll(holdoutSql, {
    segment,
    period_from: timestampValue(startOfDayMs(period.from)),
    period_to: timestampValue(endOfPeriodMs(period)),
  });
  const rows = reader.getRowObjects();
  const withRecommendations = armOf(rows.find(({ is_holdout }) => is_holdout === false));
  const without = armOf(rows.find(({ is_holdout }) => is_holdout === true));
  return {
    segment,
    served_by_mistake: without.served,
    with_recommendations: shownArm(withRecommendations),
    without_recommendations: shownArm(without),
    difference: {
      purchases_per_student: difference(purchasesOf(withRecommendations), purchasesOf(without)),
      amount_per_student: difference(amountsOf(withRecommendations), amountsOf(without)),
    },
  };
}

function armOf(row: Readonly<Record<string, DuckDBValue>> | undefined): Arm {
  const figure = (name: string): number => Number(row?.[name] ?? 0);
  const students = figure('students');
  const purchases = figure('purchases');
  const amount = figure('amount');
  const perStudent = (sum: number): number | null => (students === 0 ? null : sum / students);
  return {
    students,
    purchases,
    amount,
    purchases_per_student: perStudent(purchases),
    amount_per_student: perStudent(amount),
    served: figure('served'),
    purchasesVariance: figure('purchases_variance'),
    amountVariance: figure('amount_variance'),
  };
}

function shownArm(arm: Arm): HoldoutStudents {
  const { students, purchases, amount, purchases_per_student, amount_per_student } = arm;
  return { students, purchases, amount: toCents(amount), purchases_per_student, amount_per_student };
}

function purchasesOf({ students, purchases_per_student, purchasesVariance }: Arm): Sample | null {
  if (purchases_per_student === null) return null;
  return { size: students, mean: purchases_per_student, variance: purchasesVariance };
}

function amountsOf({ students, amount_per_student, amountVariance }: Arm): Sample | null {
  if (amount_per_student === null) return null;
  return { size: students, mean: amount_per_student, variance: amountVariance };
}

function difference(first: Sample | null, second: Sample | null): HoldoutDifference {
  if (first === null || second === null) return { value: null, low: null, high: null };
  const interval = differenceInterval(first, second);
  return { value: first.mean - second.mean, low: interval?.low ?? null, high: interval?.high ?? null };
}

/** Sums of fractions differ in their last digits with the order of the rows. */
export function toCents(sum: number): number {
  return Math.round(sum * 100) / 100;
}
