// How tables are spread over the nodes of a Citus cluster, where the database is one.

/**
 * The statements that distribute a table that was just made. `key` is the second column of the primary key of
 * a table of records; null for a housekeeping table.
 */
export function distributeSql(table: string, key: string | null): readonly string[] {
  if (key !== null) return [`SELECT create_distributed_table('${table}', '${key}')`];
  // Answers are many and belong to one organisation each; the other housekeeping is small and read everywhere.
  return table === 'idempotency_answers'
    ? [`SELECT create_distributed_table('${table}', 'organisation')`]
    : [`SELECT create_reference_table('${table}')`];
}
