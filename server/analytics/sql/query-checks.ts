// Decides whether queries may run: they are checked and then planned. An organisation has one query checked at a time, so
// that others do not wait for many large ones.

import type { OrderRefusal, SqlOrder } from '../analytics-orders.ts';
import { replicaTables } from '../replica-tables.ts';
import { checkQuery } from './check-query.ts';
import { QueryParser } from './query-parser.ts';
import { QueryPlanner } from './query-planner.ts';

const tableNames = replicaTables.map(({ name }) => name);

export class QueryChecks {
  readonly #parser = new QueryParser();
  readonly #planner = new QueryPlanner();
  /** The last check of each organisation. */
  readonly #last = new Map<string, Promise<OrderRefusal | null>>();

  /** Returns why the query may not run, or null. */
  async refusalOf({ orgId, sql, params }: SqlOrder): Promise<OrderRefusal | null> {
    // What was planned was checked before.
    if (this.#planner.hasPlanned(sql, params)) return null;
    const before = this.#last.get(orgId)?.catch(() => null) ?? Promise.resolve(null);
    const check = before.then(
      async () => (await checkQuery(this.#parser, sql, tableNames)) ?? this.#planner.plan(sql, params),
    );
    this.#last.set(orgId, check);
    try {
      return await check;
    } finally {
      if (this.#last.get(orgId) === check) this.#last.delete(orgId);
    }
  }
}
