// The store interface for organisations.

import type { OrganisationNumber } from './rows.ts';

export interface Organisation {
  readonly organisation: OrganisationNumber;
  readonly orgId: string;
  readonly name: string;
  readonly createdAtMs: number;
}

export interface OrganisationStore {
  /** Returns null if the name is taken. */
  createOrganisation(name: string, orgId: string, createdAtMs: number): Promise<Organisation | null>;
  /** Returns all organisations, sorted by name. */
  organisations(): Promise<readonly Organisation[]>;
}
