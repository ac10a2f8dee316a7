// Quotes text for shell commands that are shown to the user.

import { printable } from './printable.ts';

/** Returns the text as one shell word. Unprintable characters are escaped as Bash and Zsh accept them. */
export function shellWord(text: string): string {
  if (printable(text) !== text) return `$'${printable(text.replaceAll(/[\\']/g, '\\$&'))}'`;
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
