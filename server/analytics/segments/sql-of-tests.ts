// Writes the SQL of the tests in a condition. Every comparison is with a parameter.

import { dateTimeFromMs } from '@headgate/catalogue/kinds/date-time.ts';
import type { OrderTestName, Test, TestValue } from './condition-node.ts';
import type { SqlParam, SqlParams } from './sql-params.ts';

const operators: Readonly<Record<OrderTestName, string>> = {
  at_least: '>=',
  at_most: '<=',
  above: '>',
  below: '<',
};

export interface Compared {
  /** DuckDB's type of the value that is tested. */
  readonly type: string;
  readonly asOf: Date;
  readonly params: SqlParams;
}

/**
 * Returns SQL for whether a value passes the test. `some` gets SQL for a test of one value, and returns SQL for whether
 * one of the values passes it; its result may be null for false. The result is never null if the test also passes
 * without a value.
 */
export function testSql(
  test: Test,
  some: (passes: (column: string) => string) => string,
  compared: Compared,
): string {
  const { type, params } = compared;
  switch (test.kind) {
    case 'in':
      return some(isInSql(test.values, compared));
    case 'not_in':
      return `NOT coalesce(${some(isInSql(test.values, compared))}, false)`;
    case 'contains':
      return some((column) => `contains(${column}, ${params.add(test.text)}::VARCHAR)`);
    case 'exists': {
      const exists = some((column) => `${column} IS NOT NULL`);
      return test.expected ? exists : `NOT coalesce(${exists}, false)`;
    }
    default: {
      const value = params.add(paramOf(test.value, compared.asOf));
      return some((column) => `${column} ${operators[test.kind]} ${value}::${type}`);
    }
  }
}

function isInSql(values: readonly TestValue[], { type, asOf, params }: Compared): (column: string) => string {
  const given = values.map((value) => paramOf(value, asOf));
  if (given.length === 1) {
    const value = params.add(given[0]!);
    return (column) => `${column} = ${value}::${type}`;
  }
  // A long list is much faster to plan as one parameter than as many.
  const list = params.add(JSON.stringify(given));
  return (column) => `${column} IN (SELECT unnest(${list}::JSON::${type}[]))`;
}

export function paramOf(value: TestValue, asOf: Date): SqlParam {
  return typeof value === 'object' ? dateTimeFromMs(asOf.getTime() - value.agoMs) : value;
}
