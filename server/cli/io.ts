// What a command has of the world: a terminal, the environment and the time. And how it ends.

export interface Io {
  /** To standard output, with a line break. */
  out(line: string): void;
  /** To standard error, with a line break. */
  err(line: string): void;
  /** Whether standard error is a terminal, on which a line can be written over. */
  readonly isTerminal: boolean;
  /** On a terminal: puts the text in the place of what was last put there. */
  rewrite(text: string): void;
  /** How wide the terminal is, where that is known. */
  readonly widthCharacters?: number | undefined;
  readonly env: { readonly [name: string]: string | undefined };
  nowMs(): number;
}

/** 2 says that the command line or a setting must be corrected; 1 that it was right and could not be done. */
export const exitCodes = { done: 0, failed: 1, misused: 2 } as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

export function failed(io: Io, sentence: string): ExitCode {
  io.err(`headgate: ${sentence}`);
  return exitCodes.failed;
}

export function misused(io: Io, sentence: string): ExitCode {
  io.err(`headgate: ${sentence}`);
  return exitCodes.misused;
}

export function printJson(io: Io, value: unknown): ExitCode {
  io.out(JSON.stringify(value));
  return exitCodes.done;
}

export function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
