// The interface through which a command uses the terminal, the environment and the clock, and the exit codes of all
// commands.

import type { Failure } from '../failure.ts';

export interface Io {
  /** Writes a line to standard output, with a line break. */
  out(line: string): void;
  /** Writes a line to standard error, with a line break. */
  err(line: string): void;
  /** Whether standard error is a terminal, on which a line can be overwritten. */
  readonly isTerminal: boolean;
  /** On a terminal: replaces the current line with the text. */
  rewrite(text: string): void;
  /** The width of the terminal that standard error goes to, if it is known. */
  readonly widthCharacters?: number | undefined;
  /** The width of the terminal that standard output goes to; undefined if it does not go to a terminal. */
  readonly outWidthCharacters?: number | undefined;
  readonly env: { readonly [name: string]: string | undefined };
  nowMs(): number;
}

/** 2 means that the command line or a setting is wrong. 1 means that both were valid, but the command failed. */
export const exitCodes = { done: 0, failed: 1, misused: 2 } as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

export function failed(io: Io, why: Failure | string): ExitCode {
  report(io, why);
  return exitCodes.failed;
}

export function misused(io: Io, why: Failure | string): ExitCode {
  report(io, why);
  return exitCodes.misused;
}

function report(io: Io, why: Failure | string): void {
  io.err(`headgate: ${typeof why === 'string' ? why : why.reason}`);
}

export function printJson(io: Io, value: unknown): ExitCode {
  io.out(JSON.stringify(value));
  return exitCodes.done;
}

export function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
