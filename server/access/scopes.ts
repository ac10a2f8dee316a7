// Defines the scopes of keys. A scope is an action, or an action on records of one type: `data:write:shops`.

import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { isRecordTypeName, type RecordTypeName, recordTypeNames } from '@headgate/catalogue/record-types.ts';
import { Failure } from '../failure.ts';
import { nearName } from '../near-name.ts';

export const actions = [
  'data:write',
  'data:read',
  'interactions:write',
  'interactions:read',
  'analytics:read',
  'analytics:write',
] as const;

export type Action = (typeof actions)[number];
type DataAction = Extract<Action, `data:${string}`>;
export type Scope = Action | `${DataAction}:${RecordTypeName}`;

/** A key may do everything by default. */
export const defaultScopes: readonly Scope[] = actions;

/** Returns the scopes without duplicates, or the default ones if none are given. */
export function parseScopes(texts: readonly string[]): readonly Scope[] | Failure {
  const scopes = new Set<Scope>();
  for (const text of texts) {
    if (!isScope(text)) return new Failure(whyNoScope(text));
    scopes.add(text);
  }
  return scopes.size === 0 ? defaultScopes : [...scopes];
}

function isScope(text: string): text is Scope {
  if ((actions as readonly string[]).includes(text)) return true;
  const [action, type] = splitNarrowed(text);
  return isDataAction(action) && type !== null && isRecordTypeName(type);
}

function splitNarrowed(text: string): [action: string, type: string | null] {
  const colon = text.indexOf(':', text.indexOf(':') + 1);
  return colon === -1 ? [text, null] : [text.slice(0, colon), text.slice(colon + 1)];
}

function isDataAction(action: string): action is DataAction {
  return action === 'data:write' || action === 'data:read';
}

function whyNoScope(text: string): string {
  const [action, type] = splitNarrowed(text);
  if (type !== null && isDataAction(action)) {
    const near = nearName(type, recordTypeNames);
    const known =
      near === null ? `the types are ${recordTypeNames.join(', ')}` : `did you mean ${action}:${near}?`;
    return `the scope ${quote(text)} has an unknown record type; ${known}`;
  }
  const near = nearName(text, actions);
  const hint = near === null ? '' : `; did you mean ${near}?`;
  return (
    `${quote(text)} is not a scope: the scopes are ${actions.join(', ')}, ` +
    `and data:write and data:read can be narrowed to a type, as in data:write:shops${hint}`
  );
}

/** Returns whether the scopes allow the action. For a `data:` action, a scope for only this type is enough. */
export function permits(scopes: readonly string[], action: DataAction, type: RecordTypeName): boolean;
export function permits(scopes: readonly string[], action: Exclude<Action, DataAction>): boolean;
export function permits(scopes: readonly string[], action: Action, type?: RecordTypeName): boolean {
  return scopes.includes(action) || (type !== undefined && scopes.includes(`${action}:${type}`));
}
