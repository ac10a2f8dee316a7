// Stores organisations in SQLite.

import type { Organisation, OrganisationStore } from '../organisations.ts';
import type { Prepare } from './statements.ts';
import { type Callers, nobodys } from './thread-operations.ts';

export function organisationLookUps(prepare: Prepare) {
  return {
    organisations(): readonly Organisation[] {
      return prepare('SELECT organisation, org_id, name, created_at_ms FROM organisations ORDER BY name')
        .all()
        .map((row) => ({
          organisation: row.organisation as number,
          orgId: row.org_id as string,
          name: row.name as string,
          createdAtMs: row.created_at_ms as number,
        }));
    },
  };
}

export function organisationWrites(prepare: Prepare) {
  return {
    createOrganisation(name: string, orgId: string, createdAtMs: number): Organisation | null {
      const row = prepare(
        `INSERT INTO organisations (org_id, name, created_at_ms) VALUES (?, ?, ?)
          ON CONFLICT (name) DO NOTHING RETURNING organisation`,
      ).get(orgId, name, createdAtMs);
      return row === undefined ? null : { organisation: Number(row.organisation), orgId, name, createdAtMs };
    },
  };
}

export function organisationStore({ writer, reader }: Callers): OrganisationStore {
  return {
    createOrganisation: (...args) => writer.call('createOrganisation', args, nobodys),
    organisations: () => reader.call('organisations', [], nobodys),
  };
}
