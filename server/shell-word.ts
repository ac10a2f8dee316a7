// Quotes text for shell commands that are shown to the user.

import { printable } from './printable.ts';

/** Returns the text as one word for a shell. Unprintable characters are escaped in a form that Bash and Zsh accept. */
export function shellWord(text: string): string {
  if (printable(text) !== text) return `$'${printable(text.replaceAll(/[\\']/g, '\\$&'))}'`;
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
