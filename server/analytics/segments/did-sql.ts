// Writes the query that measures what customers did: one scan of the rows, grouped by customer.

import { dateTimeFromMs } from '@headgate/catalogue/kinds/date-time.ts';
import { quoted } from '../../store/tables.ts';
import type { DidNode, Measure, Window } from './condition-node.ts';
import { events } from './field-paths.ts';
import { andIsLive, columnTypeOf, somePassesSql, tableNameOf, valueJoins } from './path-sql.ts';
import { paramOf, testSql } from './sql-of-tests.ts';
import type { SqlParams } from './sql-params.ts';

interface Scope {
  readonly asOf: Date;
  readonly params: SqlParams;
  /** The placeholder of the only customer, or null for all customers. */
  readonly customer: string | null;
}

/** Returns a query for the measured value, `saw`, of every customer that has matching rows. */
export function didSql({ type, where, window, measure }: DidNode, scope: Scope): string {
  const { asOf, params, customer } = scope;
  const student = `e.${quoted(events[type].customer)}`;
  const time = `e.${quoted(events[type].time)}`;
  const conditions = [
    customer === null ? `${student} IS NOT NULL` : `${student} = ${customer}`,
    ...windowSql(window, time, scope),
  ];
  for (const { path, tests } of where) {
    const compared = { type: columnTypeOf(path), asOf, params };
    for (const test of tests) {
      conditions.push(testSql(test, (passes) => somePassesSql(path, 'e', passes), compared));
    }
  }
  const { joins, value } = measureSql(measure, time);
  return (
    `SELECT ${student} AS customer_id, ${value} AS saw FROM ${tableNameOf(type)} e${joins}` +
    ` WHERE ${conditions.join(' AND ')}${andIsLive(type, 'e')} GROUP BY ${student}`
  );
}

/** A row without a time is in no window, because comparisons with null are not true. */
function windowSql(window: Window, time: string, { asOf, params }: Scope): readonly string[] {
  const compare = (operator: string, text: string): string =>
    `${time} ${operator} ${params.add(text)}::TIMESTAMPTZ`;
  switch (window.kind) {
    case 'always':
      return [];
    case 'within':
      return [
        compare('>', dateTimeFromMs(asOf.getTime() - window.ms)),
        compare('<=', dateTimeFromMs(asOf.getTime())),
      ];
    case 'between':
      return [
        ...(window.since === null ? [] : [compare('>=', paramOf(window.since, asOf) as string)]),
        ...(window.until === null ? [] : [compare('<', paramOf(window.until, asOf) as string)]),
      ];
  }
}

function measureSql(measure: Measure, time: string): { readonly joins: string; readonly value: string } {
  switch (measure.kind) {
    case 'times':
      return { joins: '', value: 'count(*)::DOUBLE' };
    case 'last':
      return { joins: '', value: `max(${time})` };
    case 'first':
      return { joins: '', value: `min(${time})` };
    default: {
      const { joins, column } = valueJoins(measure.path, 'e');
      if (measure.kind === 'distinct') return { joins, value: `count(DISTINCT ${column})::DOUBLE` };
      // With compensated summation, ten times 0.1 is 1, and the result does not depend on the order of the rows.
      return { joins, value: `${measure.kind === 'sum' ? 'fsum' : 'favg'}(${column})` };
    }
  }
}
