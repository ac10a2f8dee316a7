// The input that every command is run with.

import type { Io } from './io.ts';

/** The validated input of a command: all required arguments are present, and every option is one that it takes. */
export interface Call {
  readonly io: Io;
  readonly args: readonly string[];
  option(name: string): string | undefined;
  optionAll(name: string): readonly string[];
  isOn(name: string): boolean;
}
