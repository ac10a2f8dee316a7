// The input that every command is run with.

import type { Io } from './io.ts';

/** The validated input of a command. All required arguments are present, and all given options are known to it. */
export interface Call {
  readonly io: Io;
  readonly args: readonly string[];
  option(name: string): string | undefined;
  optionAll(name: string): readonly string[];
  isOn(name: string): boolean;
}
