// What a command is run with.

import type { Io } from './io.ts';

/** A command's call, already checked: its arguments are there, and every option is one that it takes. */
export interface Call {
  readonly io: Io;
  readonly args: readonly string[];
  option(name: string): string | undefined;
  optionAll(name: string): readonly string[];
  isOn(name: string): boolean;
}
