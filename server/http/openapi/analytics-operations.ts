// Describes the operations and schemas of analytics.

import { shownDateTimeSchema } from '@headgate/catalogue/kinds/date-time.ts';
import type { JsonSchema } from '@headgate/catalogue/kinds/kind.ts';
import { apiRoutes } from '../routes.ts';
import { readSentQuery } from '../sql-handlers.ts';
import type { Example, Operation } from './document-shape.ts';
import { refTo } from './document-shape.ts';
import { EXAMPLE_SEQ, exampleRecordedAt } from './example-records.ts';
import { keyed, refusalFrom } from './operation.ts';
import { answered, jsonContent, keyHeaders, refused, statusesOfBodies } from './responses.ts';
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

export const analyticsSchemas: Readonly<Record<string, JsonSchema>> = {
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
        description: 'When the copy of the data was last compared with the ledger.',
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

export function runSql(): Operation {
  return keyed('analytics:read', undefined, {
    operationId: 'runSql',
    summary: 'Run an SQL query',
    description:
      "Runs a SELECT statement of DuckDB on the organisation's data. There is a table for each type, with `_` for `-`, " +
      'and the tables `interactions` and `uploads`. Deleted records are included, with `is_deleted`. The query sees ' +
      'everything that was uploaded before; `as_of` says so. With the header `Accept: text/csv`, ' +
      '`application/x-ndjson` or `application/vnd.apache.parquet`, the response has that format and no limit of rows.',
    body: { schema: 'SqlQuery', name: 'shops_by_region', example },
    responses: {
      ...statusesOfBodies,
      200: answered('The rows.', jsonContent(refTo('schemas', 'SqlResult'), { shops_by_region: example })),
      400: refused(
        refusalFrom(readSentQuery(Buffer.from('{}'))),
        keyHeaders,
        'no_query',
        'The body or the query is not valid, or the query took too long or too much memory. `position` is the number ' +
          'of characters before the error in the text of the query.',
      ),
    },
    path: apiRoutes.runSql.path,
    anchor: 'sql',
  });
}
