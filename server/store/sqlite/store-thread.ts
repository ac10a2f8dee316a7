// Starts a thread of a SQLite store, starts it again if it ends, and connects the users of the store to it.

import { MessageChannel, type Transferable } from 'node:worker_threads';
import { storeThreadLimits } from '../../thread-memory.ts';
import { type StartedWorker, SupervisedWorker, startWorker } from '../../workers/supervised-worker.ts';
import { StoreUnavailable } from '../store.ts';
import type { ThreadStatus } from './sqlite-store.ts';
import { type CallResult, errorOf } from './thread-calls.ts';
import type { Order, ThreadName, ThreadNews, ThreadSetup } from './thread-loop.ts';

export type SendStatus = (status: ThreadStatus, transferList: readonly Transferable[]) => void;

export function superviseThread(setup: ThreadSetup, onTrouble: (trouble: string) => void) {
  const { name, files, health } = setup;
  const holders = new Set<SendStatus>();

  const introduce = (tell: SendStatus): void => {
    const worker = supervised.running;
    if (worker === null) return;
    const { port1, port2 } = new MessageChannel();
    worker.postMessage({ kind: 'connect', port: port1 } satisfies Order, [port1]);
    tell({ thread: name, port: port2, files, health }, [port2]);
  };

  const sendLost = (reason: string): void => {
    for (const tell of holders) tell({ thread: name, lost: reason }, []);
  };

  const supervised = new SupervisedWorker({
    start: () => startThread(setup, onTrouble),
    whenReady: opened,
    onReady: () => holders.forEach(introduce),
    onLost({ message }, what) {
      sendLost(
        what === 'ended'
          ? `the store's ${name} thread ended unexpectedly (${message}) and is being started again`
          : `the store's ${name} thread cannot be started: ${message}`,
      );
    },
  });

  return {
    open: () => supervised.open(),
    /** Calls `tell` with the thread's status now, and whenever the thread is restarted or lost. */
    join(tell: SendStatus): void {
      holders.add(tell);
      introduce(tell);
    },
    leave: (tell: SendStatus) => holders.delete(tell),
    async close(): Promise<void> {
      await supervised.close((worker) => {
        worker.ref();
        worker.postMessage({ kind: 'close' } satisfies Order);
      });
      sendLost('the store is closed');
    },
  };
}

const scripts: Readonly<Record<ThreadName, URL>> = {
  writer: new URL('./writer-thread.ts', import.meta.url),
  reader: new URL('./reader-thread.ts', import.meta.url),
  lister: new URL('./reader-thread.ts', import.meta.url),
};

function startThread(setup: ThreadSetup, onTrouble: (trouble: string) => void): StartedWorker {
  const started = startWorker(scripts[setup.name], {
    workerData: setup,
    resourceLimits: storeThreadLimits,
  });
  started.worker.on('message', (news: ThreadNews) => {
    if (news.kind === 'trouble') onTrouble(news.message);
  });
  started.worker.unref();
  return started;
}

/**
 * Resolves when the thread has opened the database. Rejects with the thread's error, or with StoreUnavailable if the
 * thread ends without reporting one.
 */
async function opened({ worker, ended }: StartedWorker): Promise<void> {
  const told = new Promise<CallResult>((resolve) => {
    worker.on('message', (news: ThreadNews) => {
      if (news.kind !== 'trouble') resolve(news);
    });
  });
  worker.ref();
  worker.postMessage({ kind: 'open' } satisfies Order);
  const outcome = await Promise.race([told, ended]);
  worker.unref();
  if (outcome instanceof Error) {
    throw new StoreUnavailable(
      `a thread of the store ended before it could open the database: ${outcome.message}`,
    );
  }
  if (outcome.kind === 'done') return;
  await worker.terminate();
  throw errorOf(outcome);
}
