// Decides whether a query may run: checks it, and then has it planned. One query is checked at a time, so that an
// organisation with many large ones does not make others wait for the processes that plan them.

import { hash } from 'node:crypto';
import type { OrderRefusal, SqlOrder } from '../analytics-orders.ts';
import { replicaTables } from '../replica-tables.ts';
import { checkQuery } from './check-query.ts';
import { QueryParser } from './query-parser.ts';
import type { QueryParameter } from './run-query.ts';

const REMEMBERED_QUERIES = 1000;
const tableNames = replicaTables.map(({ name }) => name);

/** Resolves to why a query cannot be planned, or to null. */
type Plan = (sql: string, parameters: readonly QueryParameter[]) => Promise<OrderRefusal | null>;

export class QueryChecks {
  readonly #parser = new QueryParser();
  readonly #plan: Plan;
  /** Hashes of queries that may run, because programs send the same ones again and again. */
  readonly #allowed = new Set<string>();
  #last: Promise<OrderRefusal | null> = Promise.resolve(null);

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  /** Returns why the query may not run, or null. */
  async refusalOf({ sql, params }: SqlOrder): Promise<OrderRefusal | null> {
    const digest = hash('sha256', JSON.stringify([sql, params]));
    if (this.#allowed.has(digest)) return null;
    this.#last = this.#last
      .catch(() => null)
      .then(async () => {
        if (this.#allowed.has(digest)) return null;
        return (await checkQuery(this.#parser, sql, tableNames)) ?? this.#plan(sql, params);
      });
    const refusal = await this.#last;
    if (refusal === null) this.#remember(digest);
    return refusal;
  }

  #remember(digest: string): void {
    if (this.#allowed.size >= REMEMBERED_QUERIES) this.#allowed.clear();
    this.#allowed.add(digest);
  }
}
