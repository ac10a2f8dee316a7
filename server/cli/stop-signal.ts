// Lets a command delete its partial output when it is stopped by a signal.

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
