// Runs work in a process of its own, in two steps: it prepares first and starts on request. So only the work itself is
// timed, and none of it runs in the process that measures.

import { fork } from 'node:child_process';
import { once } from 'node:events';

export interface PreparedChild<Result> {
  /** Starts the work and resolves to its result. */
  run(): Promise<Result>;
  /** Kills the process. A child that is neither run nor ended keeps this process alive. */
  end(): void;
}

/** A message of a child: that it has prepared (null), the result of its work, or the error. */
type Said = { readonly result: unknown } | { readonly failed: string };

/** Starts the script with the order and resolves when it has prepared. It must call `takeOrder`. */
export async function prepareChild<Order, Result>(script: URL, order: Order): Promise<PreparedChild<Result>> {
  const child = fork(script);
  const exited = once(child, 'exit').then(([code]) => {
    throw new Error(`${script.pathname} ended with ${code} before it had finished`);
  });
  exited.catch(() => {});
  const message = async (): Promise<unknown> => {
    const [said] = (await Promise.race([once(child, 'message'), exited])) as [Said];
    if ('failed' in said) throw new Error(said.failed);
    return said.result;
  };
  child.send(order as object);
  await message();
  return {
    async run() {
      const result = message();
      child.send('run');
      return (await result) as Result;
    },
    end: () => void child.kill('SIGKILL'),
  };
}

/** The child's side: `prepare` gets the order and returns the work to be timed. */
export function takeOrder<Order, Result>(prepare: (order: Order) => Promise<() => Promise<Result>>): void {
  // A long message is sent in parts, and would be lost if the process ended before the last one.
  const say = (said: Said): Promise<void> =>
    new Promise((resolve) => process.send!(said, undefined, undefined, () => resolve()));
  const tell = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      await say({ result: await work() });
    } catch (error) {
      await say({ failed: (error as Error).stack ?? String(error) });
      process.disconnect();
    }
  };
  process.once('message', (order: Order) =>
    tell(async () => {
      const work = await prepare(order);
      process.once('message', async () => {
        await tell(work);
        if (process.connected) process.disconnect();
        process.exit();
      });
      return null;
    }),
  );
}
