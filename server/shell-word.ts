// Text in commands that are shown to be pasted.

import { printable } from './printable.ts';

/** As a shell takes it for one word; what cannot be printed as Bash and Zsh take it escaped. */
export function shellWord(text: string): string {
  if (printable(text) !== text) return `$'${printable(text.replaceAll(/[\\']/g, '\\$&'))}'`;
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
