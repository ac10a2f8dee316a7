// Runs a command line that must fail, and returns its output and exit code.

import { type Environment, runHeadgate } from './headgate.ts';

export interface FailedCommand {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export async function failedHeadgate(
  args: readonly string[],
  environment: Environment,
): Promise<FailedCommand> {
  try {
    await runHeadgate(args, { ...process.env, ...environment });
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number | null; stdout: string; stderr: string };
    return { exitCode: code, stdout, stderr };
  }
  throw new Error(`headgate ${args.join(' ')} succeeded`);
}

/** One line on standard error, nothing else. */
export const oneSentence = /^headgate: [^\n]+\n$/;
