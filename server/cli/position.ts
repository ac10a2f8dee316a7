// Reads and shows positions in the ledger, from which changes are read.

import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { positionPattern } from '@headgate/client/ledger.ts';
import { Failure } from '../failure.ts';
import type { Io } from './io.ts';

export function readPosition(option: 'after' | 'since', text: string): string | Failure {
  if (positionPattern.test(text)) return text;
  return new Failure(
    `--${option} must be a position, such as 41 or 41:500, or 0 for the beginning, not ${quote(text)}; ` +
      'for a date, give the ENTRY that `headgate uploads list --to DATE --limit 1` shows',
  );
}

/** Prints to standard error, because standard output has the changes. */
export function showPosition(io: Io, option: 'after' | 'since', position: string): void {
  io.err(`the position is ${position}; to continue from there, give --${option} ${position}`);
}
