// `headgate orgs …`: creates and lists organisations.

import { createOrganisation, findOrganisation } from '../access/organisations.ts';
import type { Organisation } from '../store/organisations.ts';
import type { Store } from '../store/store.ts';
import type { Call } from './call.ts';
import { columns } from './columns.ts';
import { type ExitCode, exitCodes, failed, type Io, isoOrNull, misused, printJson } from './io.ts';
import { withStore } from './with-store.ts';

export async function createOrg(call: Call): Promise<ExitCode> {
  const { io, args, isOn } = call;
  const create = async (store: Store): Promise<ExitCode> => {
    const created = await createOrganisation(store, args[0]!, io.nowMs());
    if (created.kind === 'refused') return misused(io, `the name ${created.reason}`);
    if (created.kind === 'taken') return failed(io, `there is already an organisation "${created.name}"`);
    const { orgId, name } = created.organisation;
    if (isOn('json')) return printJson(io, { org_id: orgId, name });
    io.out(`Made the organisation "${name}" with the id ${orgId}.`);
    io.out(`Next, issue a key to it: headgate keys issue --org ${orgId}`);
    return exitCodes.done;
  };
  return withStore(call, create, 'may be made');
}

export async function listOrgs(call: Call): Promise<ExitCode> {
  const { io, isOn } = call;
  return withStore(call, async (store) => {
    const organisations = await store.organisations();
    if (isOn('json')) {
      return printJson(
        io,
        organisations.map(({ orgId, name, createdAtMs }) => ({
          org_id: orgId,
          name,
          created_at: isoOrNull(createdAtMs),
        })),
      );
    }
    if (organisations.length === 0) {
      io.out('There is no organisation yet. Make one: headgate orgs create NAME');
      return exitCodes.done;
    }
    const rows = organisations.map(({ orgId, name, createdAtMs }) => [orgId, isoOrNull(createdAtMs)!, name]);
    for (const line of columns([['ID', 'CREATED', 'NAME'], ...rows])) io.out(line);
    return exitCodes.done;
  });
}

/** Returns the organisation with the name or id. If there is none, prints an error and returns the exit code. */
export async function namedOrganisation(
  io: Io,
  store: Store,
  nameOrId: string,
): Promise<Organisation | ExitCode> {
  const found = await findOrganisation(store, nameOrId);
  if (found.kind === 'found') return found.organisation;
  const hint = found.near === null ? 'headgate orgs list shows them all' : `did you mean "${found.near}"?`;
  return failed(io, `there is no organisation ${JSON.stringify(nameOrId)}; ${hint}`);
}
