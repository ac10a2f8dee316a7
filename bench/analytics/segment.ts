// A segment of four conditions, and the same counts in the SQL of other databases.

import { ConditionProblem } from '../../server/analytics/segments/condition-problem.ts';
import { parseCondition } from '../../server/analytics/segments/parse-condition.ts';
import { previewSql } from '../../server/analytics/segments/preview-sql.ts';
import type { Statement } from '../../server/analytics/segments/sql-params.ts';
import { Failure } from '../../server/failure.ts';
import { ORGANISATION } from '../rows.ts';

/** Customers of two regions who bought often and for much, and have used no discount code. */
export const condition = {
  all: [
    { customer: 'region', in: ['DE', 'GB'] },
    { did: 'transactions', where: { source: { is: 'online' } }, within: '30d', times: { at_least: 2 } },
    { did: 'transactions', within: '90d', sum: { amount: { at_least: 100 } } },
    { not: { did: 'interactions', where: { interaction_type: { is: 'DISCOUNT_CODE' } }, within: '60d' } },
  ],
};

const DAY_MS = 24 * 60 * 60 * 1000;

/** Returns the statement that Headgate runs for a preview. Its first column is a sample, its second the count. */
export function statementForDuckdb(asOf: Date): Statement {
  const parsed = parseCondition(condition);
  if (parsed instanceof ConditionProblem) throw new Error(parsed.message);
  const statement = previewSql(parsed, { asOf, conditionOf: () => null });
  if (statement instanceof Failure) throw new Error(statement.reason);
  return statement;
}

/** The counts of all nodes for SQLite and PostgreSQL. The parameters are `timesFor`. */
export const sqlOfStores = `WITH
  often AS (SELECT student_id, count(*) AS saw FROM transactions
    WHERE organisation = ${ORGANISATION} AND student_id IS NOT NULL AND created > $1 AND created <= $4
      AND source = 'online' AND is_deleted IS NOT TRUE GROUP BY student_id),
  much AS (SELECT student_id, sum(amount) AS saw FROM transactions
    WHERE organisation = ${ORGANISATION} AND student_id IS NOT NULL AND created > $2 AND created <= $4
      AND is_deleted IS NOT TRUE GROUP BY student_id),
  codes AS (SELECT student_id, count(*) AS saw FROM interactions
    WHERE organisation = ${ORGANISATION} AND student_id IS NOT NULL AND occurred_at > $3 AND occurred_at <= $4
      AND interaction_type = 'DISCOUNT_CODE' GROUP BY student_id),
  leaves AS (SELECT coalesce(c.region IN ('DE', 'GB'), false) AS leaf_0, coalesce(often.saw, 0) >= 2 AS leaf_1,
      coalesce(much.saw, 0) >= 100 AS leaf_2, coalesce(codes.saw, 0) >= 1 AS leaf_3
    FROM customers c LEFT JOIN often ON often.student_id = c.customer_id
      LEFT JOIN much ON much.student_id = c.customer_id LEFT JOIN codes ON codes.student_id = c.customer_id
    WHERE c.organisation = ${ORGANISATION} AND c.is_deleted IS NOT TRUE)
  SELECT count(*) FILTER (WHERE leaf_0 AND leaf_1 AND leaf_2 AND NOT leaf_3) AS members,
    count(*) FILTER (WHERE leaf_0) AS holds_0, count(*) FILTER (WHERE leaf_1) AS holds_1,
    count(*) FILTER (WHERE leaf_2) AS holds_2, count(*) FILTER (WHERE leaf_3) AS holds_3 FROM leaves`;

/** Indexes that contain every column that the segment reads, so that SQLite reads no row. */
export const coveringIndexesSql = `
  CREATE INDEX segment_transactions
    ON transactions (organisation, student_id, created, source, is_deleted, amount);
  CREATE INDEX segment_interactions ON interactions (organisation, student_id, occurred_at, interaction_type);
  CREATE INDEX segment_customers ON customers (organisation, customer_id, region, is_deleted);
  ANALYZE`;

/** Returns the parameters of `sqlOfStores`, in the form in which the stores have times. */
export function timesFor(asOf: Date): readonly string[] {
  return [30, 90, 60, 0].map((days) =>
    new Date(asOf.getTime() - days * DAY_MS).toISOString().replace('Z', '000Z'),
  );
}
