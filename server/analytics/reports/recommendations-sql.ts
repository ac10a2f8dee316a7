// The statement that computes the figures of the recommendation report. It reads interactions and transactions within
// the period and the windows around it, and returns a row for each group, recommended or organic.

import type { DuckDBValue } from '@duckdb/node-api';
import type { ReportGrouping, WindowDays } from '@headgate/client/recommendations.ts';
import { windowsDays } from '../analytics-orders.ts';
import {
  DAY_MS,
  dayValue,
  endOfPeriodMs,
  type ReportPeriod,
  startOfDayMs,
  timestampValue,
} from './report-period.ts';

const LONGEST_WINDOW_DAYS = windowsDays.at(-1)!;

const DAY_US = DAY_MS * 1000;

/** The group of an interaction. */
const interactionValues: Readonly<Record<ReportGrouping, string>> = {
  item_type: 'item_type',
  day: 'day::VARCHAR',
  platform: 'platform',
  interaction_type: 'interaction_type',
};

/** Returns the UTC day of a column. A cast from TIMESTAMPTZ would use the time zone of the session. */
function utcDay(column: string): string {
  return `make_timestamp(epoch_us(${column}))::DATE`;
}

function forEachWindow(figure: (days: WindowDays) => string): string {
  return windowsDays.map(figure).join(', ');
}

/**
 * Rows with a null in `is_recommended` hold the figures of the transactions as a whole. A figure that is null in a row
 * is 0.
 */
export function recommendationsSql(by: ReportGrouping | null): string {
  const interactionValue = by === null ? 'NULL::VARCHAR' : interactionValues[by];
  const purchaseValue = by === 'day' ? `${utcDay('purchased_at')}::VARCHAR` : 'touch.value';
  return `
WITH
-- NOT MATERIALIZED: reading the columns again takes less time and memory than keeping copies of the rows.
-- Offers are attributed to their shop, deleted ones too.
near_interactions AS NOT MATERIALIZED (
  SELECT interactions.*, ${utcDay('occurred_at')} AS day, ${interactionValue} AS value,
    source IS NOT DISTINCT FROM 'SERVICE' AS is_recommended,
    CASE item_type WHEN 'SHOP' THEN item_id WHEN 'OFFER' THEN offers.shop_id END AS touched_shop_id
  FROM interactions LEFT JOIN offers ON offers.offer_id = interactions.item_id
  WHERE occurred_at >= $touches_from AND occurred_at < $purchases_to
),
engagements AS NOT MATERIALIZED (
  FROM near_interactions WHERE occurred_at >= $period_from AND occurred_at < $period_to
),
touches AS NOT MATERIALIZED (
  SELECT student_id, touched_shop_id AS shop_id, occurred_at, interaction_id, is_recommended, day, value,
    CASE item_type WHEN 'OFFER' THEN item_id END AS offer_id
  FROM near_interactions WHERE student_id IS NOT NULL AND touched_shop_id IS NOT NULL
),
purchases AS NOT MATERIALIZED (
  SELECT student_id, shop_id, created, offer_id, amount, savings
  FROM transactions
  WHERE is_deleted IS NOT TRUE AND student_id IS NOT NULL AND created >= $period_from AND created < $purchases_to
),
-- Most purchases have no touch and most touches no purchase. Leaving them out first makes the sort below short.
touches_with_purchases AS MATERIALIZED (FROM touches SEMI JOIN purchases USING (student_id, shop_id)),
purchases_with_touches AS (FROM purchases SEMI JOIN touches_with_purchases USING (student_id, shop_id)),
events AS (
  SELECT student_id, shop_id, occurred_at AS at_time, FALSE AS is_purchase, NOT is_recommended AS is_organic,
    interaction_id,
    {'at_time': occurred_at, 'day': day, 'is_recommended': is_recommended, 'value': value, 'offer_id': offer_id}
      AS touch,
    CASE WHEN is_recommended THEN occurred_at END AS recommended_at
  FROM touches_with_purchases
  UNION ALL BY NAME
  SELECT student_id, shop_id, created AS at_time, TRUE AS is_purchase, offer_id, amount, savings
  FROM purchases_with_touches
),
-- One sort finds the last touch before each purchase. At the same time, an organic touch counts as the later one.
purchases_after_touches AS (
  SELECT student_id, shop_id, is_purchase, at_time AS purchased_at, offer_id, amount, savings,
    last_value(touch IGNORE NULLS) OVER before AS touch,
    max(recommended_at) OVER before AS recommended_at
  FROM events
  WINDOW before AS (
    PARTITION BY student_id, shop_id ORDER BY at_time, is_purchase, is_organic, interaction_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  )
),
credits AS MATERIALIZED (
  SELECT student_id, shop_id, purchased_at, amount, savings, touch,
    epoch_us(purchased_at) - epoch_us(touch.at_time) AS age_us,
    epoch_us(purchased_at) - epoch_us(recommended_at) AS recommended_age_us,
    coalesce(offer_id = touch.offer_id, FALSE) AS is_strict
  FROM purchases_after_touches
  WHERE is_purchase AND age_us <= ${LONGEST_WINDOW_DAYS * DAY_US}
),
engagement_figures AS (
  SELECT is_recommended, value, count(*) AS engagements,
    count(*) FILTER (student_id IS NOT NULL AND touched_shop_id IS NOT NULL) AS touches,
    count(*) FILTER (student_id IS NULL) AS interactions_without_student,
    count(DISTINCT student_id) AS students,
    count(DISTINCT recommendation_id) AS recommendation_ids,
    count(*) FILTER (recommendation_id IS NOT NULL) AS with_recommendation_id,
    count(*) FILTER (interaction_type = 'DISCOUNT_CODE') AS discount_codes,
    count(*) FILTER (interaction_type = 'PAGE_VIEW') AS page_views
  FROM engagements GROUP BY ALL
),
episode_figures AS (
  SELECT is_recommended, value, ${forEachWindow((days) => `count(*) FILTER (day <= $closed_${days}) AS episodes_${days}`)}
  FROM (
    SELECT DISTINCT student_id, shop_id, day, is_recommended, value FROM touches
    WHERE day BETWEEN $first_day AND least($last_day, $closed_${windowsDays[0]})
  )
  GROUP BY ALL
),
converted_figures AS (
  SELECT is_recommended, value, ${forEachWindow(
    (days) => `count(*) FILTER (age_us <= ${days * DAY_US} AND day <= $closed_${days}) AS converted_${days}`,
  )}
  FROM (
    SELECT student_id, shop_id, touch.day AS day, touch.is_recommended AS is_recommended, touch.value AS value,
      min(age_us) AS age_us
    FROM credits WHERE touch.day BETWEEN $first_day AND $last_day GROUP BY ALL
  )
  GROUP BY ALL
),
purchase_figures AS (
  SELECT touch.is_recommended AS is_recommended, ${purchaseValue} AS value, ${forEachWindow((days) => {
    const isCredited = `age_us <= ${days * DAY_US}`;
    return `
    count(*) FILTER (${isCredited}) AS purchases_${days},
    fsum(amount) FILTER (${isCredited}) AS amount_${days},
    fsum(savings) FILTER (${isCredited}) AS savings_${days},
    count(*) FILTER (${isCredited} AND is_strict) AS strict_purchases_${days},
    count(*) FILTER (${isCredited} AND NOT touch.is_recommended AND recommended_age_us <= ${days * DAY_US})
      AS assisted_purchases_${days}`;
  })}
  FROM credits WHERE purchased_at < $period_to GROUP BY ALL
),
transaction_figures AS (
  SELECT NULL::BOOLEAN AS is_recommended, NULL::VARCHAR AS value, count(*) AS transactions,
    count(*) FILTER (created IS NULL) AS transactions_without_created,
    count(*) FILTER (created IS NOT NULL AND student_id IS NULL) AS transactions_without_student
  FROM transactions
  WHERE is_deleted IS NOT TRUE AND (created IS NULL OR (created >= $period_from AND created < $period_to))
)
SELECT is_recommended, value, sum(COLUMNS(* EXCLUDE (is_recommended, value)))
FROM (
  FROM engagement_figures UNION ALL BY NAME
  FROM episode_figures UNION ALL BY NAME
  FROM converted_figures UNION ALL BY NAME
  FROM purchase_figures UNION ALL BY NAME
  FROM transaction_figures
)
GROUP BY is_recommended, value
ORDER BY value NULLS LAST`;
}

/** Returns the values of the statement's parameters. */
export function recommendationsValues(period: ReportPeriod, asOfMs: number): Record<string, DuckDBValue> {
  const fromMs = startOfDayMs(period.from);
  const endMs = endOfPeriodMs(period);
  const windowMs = LONGEST_WINDOW_DAYS * DAY_MS;
  return {
    touches_from: timestampValue(fromMs - windowMs),
    period_from: timestampValue(fromMs),
    period_to: timestampValue(endMs),
    // Episodes of the last day are followed until their window closes.
    purchases_to: timestampValue(endMs + windowMs),
    first_day: dayValue(fromMs),
    last_day: dayValue(endMs - DAY_MS),
    ...Object.fromEntries(
      windowsDays.map((days) => [`closed_${days}`, dayValue(lastClosedDayMs(days, asOfMs))]),
    ),
  };
}

/** Returns the start of the last day whose episodes have a closed window. A window closes W days after the day. */
export function lastClosedDayMs(days: WindowDays, asOfMs: number): number {
  return Math.floor(asOfMs / DAY_MS) * DAY_MS - (days + 1) * DAY_MS;
}
