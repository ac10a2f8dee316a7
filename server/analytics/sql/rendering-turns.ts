// Lets queries take turns at turning their rows into text. Each turn of the event loop has one of them, so that whatever
// else the process does, such as starting another query, waits for one of them and not for all.

/** After this time, a query that renders rows waits for its next turn. */
export const RENDERING_TURN_MS = 4;

const waiting: (() => void)[] = [];

/** Resolves when it is the caller's turn, in a later turn of the event loop. */
export function renderingTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(beginNext);
  });
}

function beginNext(): void {
  waiting.shift()!();
  if (waiting.length > 0) setImmediate(beginNext);
}
