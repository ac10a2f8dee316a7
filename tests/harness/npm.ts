// Runs npm as a user would: on the Node of these tests, and without the variables that npm sets for the tests.

import { execFile } from 'node:child_process';
import { delimiter, dirname } from 'node:path';
import { promisify } from 'node:util';

const TIMEOUT_MS = 240_000;
const MOST_OUTPUT_BYTES = 16 * 1024 * 1024;
const ofAnotherNpm = /^(npm_(lifecycle|package|command|config_(local_prefix|workspace|prefix))|INIT_CWD$)/;

export const ownNodeFirst = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`;

export const npmEnvironment: NodeJS.ProcessEnv = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !ofAnotherNpm.test(name))),
  PATH: ownNodeFirst,
  npm_config_prefer_offline: 'true',
  npm_config_audit: 'false',
  npm_config_fund: 'false',
  npm_config_update_notifier: 'false',
};

/** Runs a program in the folder. Rejects, with what it printed, if it fails. */
export async function runIn(
  folder: string,
  program: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = npmEnvironment,
): Promise<string> {
  const options = { cwd: folder, env: environment, timeout: TIMEOUT_MS, maxBuffer: MOST_OUTPUT_BYTES };
  const { stdout } = await promisify(execFile)(program, [...args], options);
  return stdout;
}
