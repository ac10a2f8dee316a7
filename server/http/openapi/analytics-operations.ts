// Describes the operations and schemas of analytics.

import { date } from '@headgate/catalogue/kinds/date.ts';
import { shownDateTimeSchema } from '@headgate/catalogue/kinds/date-time.ts';
import type { JsonSchema } from '@headgate/catalogue/kinds/kind.ts';
import { reportGroupings, windowsDays } from '../../analytics/analytics-orders.ts';
import { checkSentQuery, sqlTypes } from '../analytics-handlers.ts';
import { notAcceptable } from '../header-values.ts';
import { apiRoutes } from '../routes.ts';
import type { Example, Operation } from './document-shape.ts';
import { refTo } from './document-shape.ts';
import { EXAMPLE_SEQ, exampleRecordedAt } from './example-records.ts';
import { BAD_QUERY, keyed, refusalFrom } from './operation.ts';
import { query } from './parameters.ts';
import { answered, inTypes, jsonContent, keyHeaders, refused, statusesOfBodies } from './responses.ts';
import { count, listOf, object, text } from './schema-parts.ts';

export const ANALYTICS_TAG = 'analytics';

const sent = {
  sql: 'SELECT region, count(*) AS shops FROM shops GROUP BY region ORDER BY region',
  params: [],
};

const example: Example = {
  summary: 'Shops by region',
  value: {
    columns: [
      { name: 'region', type: 'VARCHAR' },
      { name: 'shops', type: 'BIGINT' },
    ],
    rows: [['GB', 1]],
    row_count: 1,
    truncated: false,
    ms: 4,
    as_of: { seq: EXAMPLE_SEQ, at: exampleRecordedAt, complete: true },
  },
  'x-request': sent,
};

const sqlSchemas: Readonly<Record<string, JsonSchema>> = {
  SqlQuery: object(
    {
      sql: { ...text('One SELECT statement.'), minLength: 1 },
      params: {
        type: 'array',
        maxItems: 1000,
        items: { type: ['string', 'number', 'boolean', 'null'] },
        description: 'The values of the placeholders `?`, in their order.',
      },
    },
    { title: 'SQL query', optional: ['params'] },
  ),
  SqlColumn: object({
    name: text('The name of the column.'),
    type: text("DuckDB's name of the type, such as UUID, DOUBLE or TIMESTAMP WITH TIME ZONE."),
  }),
  AsOf: object(
    {
      seq: count('The query has seen everything up to this entry of the ledger.'),
      at: {
        ...shownDateTimeSchema,
        description: 'When the query arrived. Relative times, such as `30d`, are computed from it.',
      },
      complete: {
        type: 'boolean',
        description: 'False if the ledger had later entries when the query arrived.',
      },
    },
    { title: 'What a query has seen' },
  ),
  SqlResult: object(
    {
      columns: listOf('SqlColumn', 'The columns of the result.'),
      rows: {
        type: 'array',
        items: { type: 'array', items: {} },
        description: 'The rows. Each is a list of values, in the order of the columns.',
      },
      row_count: count('The number of rows.'),
      truncated: { type: 'boolean', description: 'True if there are more rows than the limit.' },
      ms: count('The milliseconds that the query took.'),
      as_of: refTo('schemas', 'AsOf'),
    },
    { title: 'Result of a query' },
  ),
};

const rate: JsonSchema = { type: ['number', 'null'], minimum: 0, maximum: 1 };

function windowFigures(own: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return object({
    episodes: count('Students at a shop on a day, with a touch, whose window has closed.'),
    converted: count('Episodes that were followed by a purchase within the window.'),
    rate: { ...rate, description: '`converted` divided by `episodes`, or null if there are none.' },
    rate_low: { ...rate, description: 'The lower end of the 95 % interval of the rate.' },
    rate_high: { ...rate, description: 'The upper end of the 95 % interval of the rate.' },
    purchases: count('Purchases in the period that are credited to these touches.'),
    amount: { type: 'number', description: 'The sum of their amounts.' },
    savings: { type: 'number', description: 'The sum of their savings.' },
    strict_purchases: count('Purchases with the same offer as the touch.'),
    ...own,
  });
}

function touchFigures(own: Readonly<Record<string, JsonSchema>>): JsonSchema {
  const window = windowFigures(own);
  return object({
    touches: count('Interactions of a student with a shop, or with an offer of a shop.'),
    engagements: count('All interactions.'),
    students: count('Different students.'),
    recommendation_ids: count('Different recommendations.'),
    discount_codes_per_page_view: {
      type: ['number', 'null'],
      description: 'Interactions of the type DISCOUNT_CODE divided by those of the type PAGE_VIEW.',
    },
    windows: object(Object.fromEntries(windowsDays.map((days) => [String(days), window]))),
  });
}

const groupProperties: Readonly<Record<string, JsonSchema>> = {
  ...Object.fromEntries(
    reportGroupings.map((by) => [
      by,
      { type: ['string', 'null'], description: `The value of the group, if \`by\` is \`${by}\`.` },
    ]),
  ),
  recommended: touchFigures({}),
  organic: touchFigures({
    assisted_purchases: count('Purchases with a recommended touch within the window, too.'),
  }),
};

const day: JsonSchema = { type: 'string', format: 'date' };

const numberOrNull: JsonSchema = { type: ['number', 'null'] };
const holdoutStudents = object({
  students: count('Customers who are not deleted.'),
  purchases: count('Their purchases in the period.'),
  amount: { type: 'number', description: 'The sum of the amounts.' },
  purchases_per_student: numberOrNull,
  amount_per_student: numberOrNull,
});
const holdoutDifference = object({
  value: { ...numberOrNull, description: 'The value with recommendations minus the value without.' },
  low: { ...numberOrNull, description: 'The lower end of the 95 % interval.' },
  high: { ...numberOrNull, description: 'The upper end of the 95 % interval.' },
});

const reportSchemas: Readonly<Record<string, JsonSchema>> = {
  RecommendationGroup: object(groupProperties, {
    title: 'Figures of a group',
    optional: [...reportGroupings],
  }),
  HoldoutComparison: object(
    {
      segment: text('The name of the segment.'),
      served_by_mistake: count('Members with an interaction that came from a recommendation.'),
      with_recommendations: holdoutStudents,
      without_recommendations: holdoutStudents,
      difference: object({
        purchases_per_student: holdoutDifference,
        amount_per_student: holdoutDifference,
      }),
    },
    { title: 'Comparison with a holdout' },
  ),
  RecommendationReport: object(
    {
      from: { ...day, description: 'The first day, in UTC.' },
      to: { ...day, description: 'The last day, in UTC.' },
      by: { type: ['string', 'null'], description: 'What the figures are grouped by.' },
      as_of: refTo('schemas', 'AsOf'),
      windows_days: { type: 'array', items: { type: 'integer' }, description: 'The windows, in days.' },
      coverage: object({
        interactions: object({
          total: count('Interactions in the period.'),
          used: count('Touches.'),
          without_student: count('Without a `student_id`.'),
          other_items: count('With tags, keywords, or offers that are not known.'),
        }),
        transactions: object({
          total: count('Transactions in the period.'),
          used: count('Purchases.'),
          without_student: count('Without a `student_id`.'),
          without_created: count('Without the time `created`.'),
        }),
        service_without_recommendation_id: count('Interactions from a recommendation that is not named.'),
        recommendation_id_without_service: count(
          'Interactions that name a recommendation, but not the source.',
        ),
      }),
      groups: listOf('RecommendationGroup', 'One group without `by`.'),
      holdout: {
        oneOf: [refTo('schemas', 'HoldoutComparison'), { type: 'null' }],
        description: 'Null without `holdout`.',
      },
      notes: { type: 'array', items: { type: 'string' }, description: 'What the figures do not say.' },
    },
    { title: 'Recommendation report' },
  ),
};

export function getRecommendationReport(): Operation {
  const exampleDay = exampleRecordedAt.slice(0, 10);
  return keyed(
    'analytics:read',
    undefined,
    {
      operationId: 'getRecommendationReport',
      summary: 'Get the recommendation report',
      description:
        'Compares what students did and bought after a recommendation with what they did without one. Each purchase is ' +
        "credited once, to the same student's last touch at the same shop within 1, 7 or 30 days.",
      parameters: [
        query('from', 'The first day, in UTC. By default 29 days before `to`.', date.schema, exampleDay),
        query('to', 'The last day, in UTC. By default today.', date.schema, exampleDay),
        query('by', 'What to group by.', { type: 'string', enum: reportGroupings }, 'platform'),
        query(
          'holdout',
          'A segment that gets no recommendations. Its members are compared with all other customers.',
          { type: 'string' },
          'holdout',
        ),
      ],
      responses: {
        200: answered('The report.', jsonContent(refTo('schemas', 'RecommendationReport'))),
        400: refused(
          {
            refusal: 'bad_request',
            message: 'by must be one of item_type, day, platform, interaction_type, not "week".',
          },
          keyHeaders,
          'bad_group',
          BAD_QUERY,
        ),
      },
      path: `${apiRoutes.getRecommendationReport.path}?from=${exampleDay}&to=${exampleDay}`,
      anchor: 'recommendations',
    },
    ANALYTICS_TAG,
  );
}

export function runSql(): Operation {
  return keyed(
    'analytics:read',
    undefined,
    {
      operationId: 'runSql',
      summary: 'Run an SQL query',
      description:
        "Runs a SELECT statement of DuckDB on the organisation's data. There is a table for each type, with `_` for `-`, " +
        'and the tables `interactions`, `uploads` and `segment_members`. Deleted records are included, with ' +
        '`is_deleted`. The query sees everything that was uploaded before; `as_of` and the header `Headgate-As-Of` say ' +
        'so. With the header `Accept: text/csv`, `application/x-ndjson` or `application/vnd.apache.parquet`, the ' +
        'response has that format and no limit of rows.',
      parameters: [
        query(
          'spreadsheet_safe',
          'For CSV only: puts an apostrophe before texts and names of columns that a spreadsheet would run as formulas.',
          { type: 'boolean', default: false },
          true,
        ),
      ],
      body: { schema: 'SqlQuery', name: 'shops_by_region', example },
      responses: {
        ...statusesOfBodies,
        200: inTypes(
          Object.values(sqlTypes),
          answered('The rows.', jsonContent(refTo('schemas', 'SqlResult'), { shops_by_region: example }), [
            ...keyHeaders,
            'Headgate-As-Of',
          ]),
        ),
        400: refused(
          refusalFrom(checkSentQuery({})),
          keyHeaders,
          'no_query',
          'The body, a parameter or the query is not valid, or the query took too long or too much memory. `position` is the number ' +
            'of characters before the error in the text of the query.',
        ),
        406: refused(notAcceptable(Object.values(sqlTypes))),
      },
      path: apiRoutes.runSql.path,
      anchor: 'sql',
    },
    ANALYTICS_TAG,
  );
}

export const analyticsSchemas: Readonly<Record<string, JsonSchema>> = { ...sqlSchemas, ...reportSchemas };
