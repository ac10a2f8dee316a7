// Lets a command end properly when it is stopped by a signal.

const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Calls the function on a signal, then ends the process with the same signal, so that the parent process sees which
 * signal ended it. Returns a function that stops listening for signals.
 */
export function onStopSignal(beforeTheEnd: () => void): () => void {
  const onSignal = (signal: NodeJS.Signals): void => {
    stopListening();
    beforeTheEnd();
    process.kill(process.pid, signal);
  };
  const stopListening = (): void => {
    for (const signal of stopSignals) process.removeListener(signal, onSignal);
  };
  for (const signal of stopSignals) process.on(signal, onSignal);
  return stopListening;
}

/**
 * Runs the function with an AbortSignal, which is aborted when the process gets SIGINT or SIGTERM. Only the first signal
 * of each kind is handled. A second one kills the process, even if the function waits for a pipe that nobody reads.
 */
export async function untilSignal<Result>(run: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const interruption = new AbortController();
  const onSignal = (): void => interruption.abort();
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  try {
    return await run(interruption.signal);
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}
