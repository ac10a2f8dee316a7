// Why a condition is not valid, and the words of such messages.

import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { nearName } from '../../near-name.ts';

/** An error in a condition. It is returned, never thrown. */
export class ConditionProblem {
  /** The path of the node or value that is not valid, such as `all[1].where.shop.tag`. Empty for the whole condition. */
  readonly path: string;
  readonly message: string;

  constructor(path: string, message: string) {
    this.path = path;
    this.message = message;
  }
}

/** Returns the end of a message about an unknown name: the name that was probably meant, or else all known names. */
export function suggestion(given: string, known: Iterable<string>): string {
  const names = [...known];
  const near = nearName(given, names);
  if (near !== null) return `; did you mean ${quotedName(near)}?`;
  return names.length === 0 ? '' : `; it can be ${listed(names)}`;
}

const alternatives = new Intl.ListFormat('en', { type: 'disjunction' });

export function listed(names: readonly string[]): string {
  return alternatives.format(names);
}

export function quotedName(name: string): string {
  return quote(name);
}
