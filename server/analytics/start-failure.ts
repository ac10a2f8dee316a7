// Says why a replica process cannot start. It imports this module before those that load DuckDB, so that the reason is
// known if that fails.

import type { FromReplicaProcess } from './replica-process-messages.ts';

/** Ends the process. Clients see the reason. The error, which may contain paths and addresses, is for the log. */
export function endWithReason(reason: string, { message }: Error): Promise<never> {
  process.stderr.write(`${message}\n`);
  const last: FromReplicaProcess = { kind: 'not_started', reason };
  process.send!(last, () => process.exit(1));
  return new Promise(() => {});
}

export function failToLoad(error: Error): void {
  void endWithReason('DuckDB cannot be loaded', error);
}

process.once('uncaughtException', failToLoad);
