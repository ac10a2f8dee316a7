// Stores organisations in PostgreSQL.

import type { OrganisationStore } from '../organisations.ts';
import { otherKeys } from './connection-slots.ts';
import type { Connections } from './connections.ts';

export function organisationStore(connections: Connections): OrganisationStore {
  const { run } = connections.for(otherKeys);
  return {
    async createOrganisation(name, orgId, createdAtMs) {
      const [row] = await run({
        text: `INSERT INTO organisations (org_id, name, created_at_ms) VALUES ($1, $2, $3)
          ON CONFLICT (name) DO NOTHING RETURNING organisation`,
        values: [orgId, name, createdAtMs],
      });
      return row === undefined ? null : { organisation: Number(row[0]), orgId, name, createdAtMs };
    },

    async organisations() {
      const rows = await run({
        name: 'organisations',
        // Names are sorted byte by byte, as in SQLite, whatever the database's collation.
        text: 'SELECT organisation, org_id, name, created_at_ms FROM organisations ORDER BY name COLLATE "C"',
        values: [],
      });
      return rows.map((row) => {
        const [organisation, orgId, name, createdAtMs] = row as [string, string, string, string];
        return { organisation: Number(organisation), orgId, name, createdAtMs: Number(createdAtMs) };
      });
    },
  };
}
