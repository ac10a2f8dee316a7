// What a command that leaves nothing half made does when it is stopped.

const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Ends by the signal itself, so that a shell or a timer sees what has ended the command. Answers how to listen no more. */
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
