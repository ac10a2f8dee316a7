// How tables are spread over the nodes of a Citus cluster, where the database is one.

import type { ClientBase } from 'pg';
import type { Step } from './steps.ts';

/**
 * All that belongs to an organisation lies together: a call works on one node, and an answer that is kept for
 * an idempotency key is committed on the node of what it guards. ARCHITECTURE.md has what was measured.
 */
const DISTRIBUTION_COLUMN = 'organisation';

/** Small, and read for every organisation: each node has a copy. */
const referenceTables: ReadonlySet<string> = new Set(['organisations', 'api_keys', 'headgate_schema']);

/** Rows that the table already has are moved with it. */
export function distributeStep(table: string): Step {
  return {
    doing: `distributing the table ${table}`,
    sql: referenceTables.has(table)
      ? `SELECT create_reference_table('${table}')`
      : `SELECT create_distributed_table('${table}', '${DISTRIBUTION_COLUMN}')`,
  };
}

/** What was moved away stays on the coordinator's disk, unseen, until it is told to drop it. */
export function dropMovedRowsStep(table: string): Step {
  return {
    doing: `dropping the coordinator's rows of the table ${table}`,
    sql: `SELECT truncate_local_data_after_distributing_table('${table}')`,
  };
}

export async function isCitusWorker(client: ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ is_worker: boolean }>(
    'SELECT groupid <> 0 AS is_worker FROM pg_dist_local_group',
  );
  return rows[0]!.is_worker;
}

/** Those of the tables that lie on the coordinator alone; one that an operator has spread otherwise is spread. */
export async function undistributed(
  client: ClientBase,
  schema: string,
  tables: readonly string[],
): Promise<readonly string[]> {
  // The last condition finds tables that Citus manages without having moved them.
  const { rows } = await client.query<{ relname: string }>(
    `SELECT relname FROM pg_class LEFT JOIN pg_dist_partition ON logicalrelid = pg_class.oid
      WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND relname = ANY ($2)
        AND (logicalrelid IS NULL OR (partmethod = 'n' AND repmodel = 's' AND colocationid = 0))`,
    [schema, tables],
  );
  const found = new Set(rows.map(({ relname }) => relname));
  return tables.filter((table) => found.has(table));
}

/** How many nodes hold shards. */
export async function countDataNodes(client: ClientBase): Promise<number> {
  const { rows } = await client.query<{ nodes: number }>(
    `SELECT count(*)::integer AS nodes FROM pg_dist_node
      WHERE shouldhaveshards AND isactive AND noderole = 'primary'`,
  );
  return rows[0]!.nodes;
}
