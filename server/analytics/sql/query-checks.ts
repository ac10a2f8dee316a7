// Decides whether a query may run: checks it, and then plans it. An organisation has one query checked at a time, so that
// many large ones do not make others wait.

import { hash } from 'node:crypto';
import type { OrderRefusal, SqlOrder } from '../analytics-orders.ts';
import { replicaTables } from '../replica-tables.ts';
import { checkQuery } from './check-query.ts';
import { QueryParser } from './query-parser.ts';
import { QueryPlanner } from './query-planner.ts';

const REMEMBERED_QUERIES = 1000;
const tableNames = replicaTables.map(({ name }) => name);

export class QueryChecks {
  readonly #parser = new QueryParser();
  readonly #planner = new QueryPlanner();
  /** Hashes of queries that may run, because programs send the same ones again and again. */
  readonly #allowed = new Set<string>();
  /** The last check of each organisation. */
  readonly #last = new Map<string, Promise<OrderRefusal | null>>();

  /** Returns why the query may not run, or null. */
  async refusalOf({ orgId, sql, params }: SqlOrder): Promise<OrderRefusal | null> {
    const digest = hash('sha256', JSON.stringify([sql, params]));
    if (this.#allowed.has(digest)) return null;
    const check = (this.#last.get(orgId) ?? Promise.resolve(null))
      .catch(() => null)
      .then(async () => {
        if (this.#allowed.has(digest)) return null;
        return (await checkQuery(this.#parser, sql, tableNames)) ?? this.#planner.plan(sql, params);
      });
    this.#last.set(orgId, check);
    try {
      const refusal = await check;
      if (refusal === null) this.#remember(digest);
      return refusal;
    } finally {
      if (this.#last.get(orgId) === check) this.#last.delete(orgId);
    }
  }

  #remember(digest: string): void {
    if (this.#allowed.size >= REMEMBERED_QUERIES) this.#allowed.clear();
    this.#allowed.add(digest);
  }
}
