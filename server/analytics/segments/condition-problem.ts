// Why a condition is not valid, and the words of such messages.

import { alternatives } from '@headgate/catalogue/alternatives.ts';
import { quote, shortened } from '@headgate/catalogue/kinds/kind.ts';
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

/** Returns the path of a property. The name may be any text that a client has sent, so a long one is cut. */
export function pathTo(at: string, name: string): string {
  return at === '' ? shortened(name) : `${at}.${shortened(name)}`;
}

/** A longer list of names would not help. */
const MOST_LISTED = 20;

function isShort(names: readonly string[]): boolean {
  return names.length > 0 && names.length <= MOST_LISTED;
}

/** Returns the end of a message about an unknown name: the name that was probably meant, or else all known names. */
export function suggestion(given: string, known: readonly string[]): string {
  return didYouMean(given, known) ?? (isShort(known) ? `; it can be ${alternatives(known)}` : '');
}

/** Returns null if no known name is near. */
export function didYouMean(given: string, known: readonly string[]): string | null {
  const near = nearName(given, known);
  return near === null ? null : `; did you mean ${quote(near)}?`;
}
