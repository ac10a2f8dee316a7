// Creates organisations, and finds them by the name or id that an operator types.

import { randomUUID } from 'node:crypto';
import { Flaw } from '@headgate/catalogue/kinds/kind.ts';
import { uuid } from '@headgate/catalogue/kinds/uuid.ts';
import { Failure } from '../failure.ts';
import { nearName } from '../near-name.ts';
import type { Organisation } from '../store/organisations.ts';
import type { Store } from '../store/store.ts';
import { parseName } from './names.ts';

export type CreatedOrganisation =
  | { readonly kind: 'created'; readonly organisation: Organisation }
  | { readonly kind: 'taken'; readonly name: string }
  | { readonly kind: 'refused'; readonly reason: string };

export async function createOrganisation(
  store: Pick<Store, 'createOrganisation'>,
  text: string,
  nowMs: number,
): Promise<CreatedOrganisation> {
  const name = parseName(text);
  if (name instanceof Failure) return { kind: 'refused', reason: name.reason };
  if (isUuid(name)) {
    return { kind: 'refused', reason: 'must not have the form of a UUID, because it would look like an id' };
  }
  const organisation = await store.createOrganisation(name, randomUUID(), nowMs);
  return organisation === null ? { kind: 'taken', name } : { kind: 'created', organisation };
}

export type FoundOrganisation =
  | { readonly kind: 'found'; readonly organisation: Organisation }
  | { readonly kind: 'unknown'; readonly near: string | null };

export async function findOrganisation(
  store: Pick<Store, 'organisations'>,
  nameOrId: string,
): Promise<FoundOrganisation> {
  const organisations = await store.organisations();
  const wanted = nameOrId.trim().normalize('NFC');
  const organisation = isUuid(wanted)
    ? organisations.find(({ orgId }) => orgId === wanted.toLowerCase())
    : organisations.find(({ name }) => name === wanted);
  if (organisation !== undefined) return { kind: 'found', organisation };
  return {
    kind: 'unknown',
    near: nearName(
      wanted,
      organisations.map(({ name }) => name),
    ),
  };
}

function isUuid(text: string): boolean {
  return !(uuid.check(text, true) instanceof Flaw);
}
