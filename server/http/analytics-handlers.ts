// Handles the requests for analytics: SQL queries and reports. The analytics process computes them, and its result is
// passed on as it arrives.

import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { reportGroupings, type SqlFormat, sqlFormats } from '../analytics/analytics-orders.ts';
import { Failure } from '../failure.ts';
import { usagePeriod } from '../ledger/usage.ts';
import { nearName } from '../near-name.ts';
import { analyticsHandler, passOn } from './analytics-requests.ts';
import type { AppDependencies } from './app-dependencies.ts';
import { badBody, readJsonBody } from './body/read-json-body.ts';
import { acceptedType } from './header-values.ts';
import { badQuery, readChoice, readFlag } from './query.ts';
import type { Handler } from './read-handlers.ts';
import { CSV_TYPE, isRefusal, JSON_TYPE, NDJSON_TYPE, type Refusal, refuse } from './refusals.ts';

const MOST_PARAMS = 1000;
const PARQUET_TYPE = 'application/vnd.apache.parquet';

export const sqlTypes: Readonly<Record<SqlFormat, string>> = {
  json: JSON_TYPE,
  csv: CSV_TYPE,
  ndjson: NDJSON_TYPE,
  parquet: PARQUET_TYPE,
};

const onlyForCsv: Refusal = badQuery('spreadsheet_safe is for CSV; send the header Accept: text/csv.');

type Param = string | number | boolean | null;

interface SentQuery {
  readonly sql: string;
  readonly params: readonly Param[];
}

export function postSql(service: AppDependencies): Handler {
  const { sqlLimits } = service;
  const parameters = ['spreadsheet_safe'] as const;
  return analyticsHandler(service, 'analytics:read', parameters, async (request, reply, given) => {
    const { analytics, query } = given;
    const isForSpreadsheet = readFlag('spreadsheet_safe', query.spreadsheet_safe);
    if (isRefusal(isForSpreadsheet)) return refuse(reply, isForSpreadsheet);
    const body = await readJsonBody(service, request, ['sql', 'params']);
    if (body === null) return reply.hijack();
    const sent = isRefusal(body) ? body : checkSentQuery(body);
    if (isRefusal(sent)) return refuse(reply, sent);
    const type = acceptedType(request.headers, Object.values(sqlTypes));
    if (isRefusal(type)) return refuse(reply, type);
    const { organisation, orgId } = request.caller!;
    const format = sqlFormats.find((known) => sqlTypes[known] === type)!;
    if (isForSpreadsheet && format !== 'csv') return refuse(reply, onlyForCsv);
    const mostRows = format === 'json' ? sqlLimits.sqlMaxRows : null;
    const timeoutMs = sqlLimits.sqlTimeoutMs;
    const order = { organisation, orgId, ...sent, format, isForSpreadsheet, mostRows, timeoutMs };
    return passOn(service, request, reply, type, (signal) => analytics.sql(order, signal));
  });
}

export function getRecommendationReport(service: AppDependencies): Handler {
  const { sqlLimits, store } = service;
  const parameters = ['from', 'to', 'by', 'holdout'] as const;
  return analyticsHandler(service, 'analytics:read', parameters, async (request, reply, given) => {
    const { analytics, query } = given;
    const by = readChoice('by', reportGroupings, query.by);
    if (isRefusal(by)) return refuse(reply, by);
    const period = usagePeriod(query.from, query.to, Date.now());
    if (period instanceof Failure) return refuse(reply, badQuery(`${period.reason}.`));
    const { organisation, orgId } = request.caller!;
    const { holdout = null } = query;
    const order = { organisation, orgId, ...period, by, holdout, timeoutMs: sqlLimits.sqlTimeoutMs };
    return passOn(service, request, reply, JSON_TYPE, async (signal) => {
      if (holdout !== null) {
        const { segments } = await store.segments(organisation);
        const names = segments.map(({ name }) => name);
        if (!names.includes(holdout)) return noHoldout(holdout, names);
      }
      return analytics.report(order, signal);
    });
  });
}

function noHoldout(given: string, names: readonly string[]): Refusal {
  const near = nearName(given, names);
  const hint = near === null ? '.' : `; did you mean ${near}?`;
  return badQuery(`holdout must be the name of a segment; there is none named ${quote(given)}${hint}`);
}

export function checkSentQuery({ sql, params = [] }: Readonly<Record<string, unknown>>): SentQuery | Refusal {
  if (typeof sql !== 'string' || sql.trim() === '')
    return badBody('The field sql must be a query, as a text.');
  if (!Array.isArray(params) || params.length > MOST_PARAMS || !params.every(isParam)) {
    return badBody(
      `The field params must be a list of at most ${MOST_PARAMS} texts, numbers, booleans or nulls, one for each ?.`,
    );
  }
  return { sql, params };
}

function isParam(value: unknown): value is Param {
  if (typeof value === 'string') return value.isWellFormed();
  // A number such as 1e999 becomes infinite.
  return value === null || typeof value === 'boolean' || Number.isFinite(value);
}
