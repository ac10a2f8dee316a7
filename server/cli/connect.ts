// Connects a command to a server: reads the URL of the server and the API key, and explains errors.

import { readFile } from 'node:fs/promises';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import {
  AbortedError,
  BrokenOffError,
  ForbiddenError,
  GoneError,
  HeadgateClient,
  RefusedError,
  ResponseTooLargeError,
  type RetryNotice,
  UnauthorizedError,
  UnreachableError,
} from '@headgate/client/client.ts';
import { Failure } from '../failure.ts';
import { readSetting } from '../settings.ts';
import type { Call } from './call.ts';
import { version } from './version.ts';

/** The first check has short limits, because a server that cannot be reached then is probably not running. */
const FIRST_PATIENCE_MS = 3000;
const FIRST_TIMEOUT_MS = 10_000;
const NO_SUCH_ID = '00000000-0000-0000-0000-000000000000';
const USER_AGENT = `headgate-cli/${version}`;

export interface Server {
  readonly url: string;
  /** The id of the API key, which is not secret. */
  readonly keyId: string;
  readonly client: HeadgateClient;
  /** Tells the user why a command waits, once for each call of the client. */
  readonly onRetry: (retry: RetryNotice) => void;
  /** Returns a sentence if the server cannot be reached or does not accept the key, otherwise null. */
  whyNotServing(): Promise<string | null>;
}

/** Returns a Failure if the URL or the key is wrong, or if there is no key. Sends no request. */
export async function connect({ io, option }: Call, command: string): Promise<Server | Failure> {
  const flags = { url: option('url'), 'key-file': option('key-file') };
  const url = readSetting('url', io.env, flags);
  if (url instanceof Failure) return url;
  const apiKey = await readKey(io.env, flags, command);
  if (apiKey instanceof Failure) return apiKey;
  const keyId = apiKey.split('_')[1] ?? '';
  const options = { url, apiKey, userAgent: USER_AGENT };
  return {
    url,
    keyId,
    client: new HeadgateClient(options),
    onRetry({ attempt, reason }) {
      if (attempt === 1) io.err(`retrying, because ${url} failed: ${reason}`);
    },
    async whyNotServing() {
      const retry = { patienceMs: FIRST_PATIENCE_MS };
      const impatient = new HeadgateClient({ ...options, retry, requestTimeoutMs: FIRST_TIMEOUT_MS });
      try {
        await impatient.get('shops', NO_SUCH_ID);
        return null;
      } catch (error) {
        // A 403 response proves that the key is valid. It need not have the scope of this request: the command's own
        // requests show whether the key has the scopes that they need.
        return error instanceof ForbiddenError && isOfHeadgate(error) ? null : whyFailed(error, url);
      }
    },
  };
}

async function readKey(
  env: Call['io']['env'],
  flags: Readonly<Record<string, string | undefined>>,
  command: string,
): Promise<string | Failure> {
  const file = readSetting('apiKeyFile', env, flags);
  if (file instanceof Failure) return file;
  // A file named on the command line takes precedence over the environment variable.
  const isMeant = file !== null && (flags['key-file'] !== undefined || !env.HEADGATE_KEY);
  const given = isMeant ? await keyIn(file) : readSetting('apiKey', env);
  if (given === null) {
    return new Failure(
      `${command} needs an API key: set HEADGATE_KEY, or give --key-file FILE; \`headgate keys issue\` makes one`,
    );
  }
  return given;
}

async function keyIn(file: string): Promise<string | Failure> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    return new Failure(`the key file ${quote(file)} cannot be read: ${(error as Error).message}`);
  }
  const key = readSetting('apiKey', { HEADGATE_KEY: text.trim() });
  if (key instanceof Failure || key === null) {
    return new Failure(`the key file ${quote(file)} must hold an API key, hg_…, and nothing else`);
  }
  return key;
}

/** Returns a sentence that explains an error of the client to the user. Rethrows any other error. */
export function whyFailed(error: unknown, url: string): string {
  if (error instanceof UnauthorizedError && isOfHeadgate(error)) {
    return `${url} does not accept the API key: it is wrong, expired or revoked. Give another in HEADGATE_KEY or with --key-file`;
  }
  if (error instanceof ForbiddenError && isOfHeadgate(error)) {
    return `${error.message.replace(/\.$/, '')}; ask the operator for a key that has it`;
  }
  if (error instanceof GoneError) {
    return (
      'the changes after this position are not available: they are older than the server keeps changes, or the ' +
      `position is beyond the last entry, ${error.latest}. To start over, export everything: headgate export all DIR`
    );
  }
  if (error instanceof UnreachableError) {
    const hasAnswered = error.cause instanceof RefusedError;
    return hasAnswered ? error.message : `${error.message}. Is the server running there?`;
  }
  if (error instanceof BrokenOffError) {
    return `the result from ${url} is not complete: the query failed, or the connection was lost`;
  }
  if (error instanceof ResponseTooLargeError) return error.message;
  if (error instanceof AbortedError) return 'it was interrupted';
  if (error instanceof RefusedError) return `${url} answered ${error.status}: ${error.message}`;
  throw error;
}

/** Returns whether Headgate itself has refused the request. If a proxy has, another API key would not help. */
function isOfHeadgate({ error }: RefusedError): boolean {
  return error !== null;
}
