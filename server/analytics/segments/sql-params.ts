// Collects the values of a statement, so that its text contains no value of a condition.

export type SqlParam = string | number | boolean;

export interface Statement {
  readonly sql: string;
  /** The values of `$1`, `$2` and so on. */
  readonly params: readonly SqlParam[];
}

export class SqlParams {
  readonly values: SqlParam[] = [];

  /** Adds a value and returns its placeholder. */
  add(value: SqlParam): string {
    return `$${this.values.push(value)}`;
  }
}
