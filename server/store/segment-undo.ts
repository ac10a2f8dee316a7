// Undoes what an interrupted evaluation of a segment has written, before the next evaluation begins.

/** What a step has done: undone some changes, found none, or found that the evaluation that undoes them was ended. */
export type UndoStep = 'some' | 'none' | 'ended';

/**
 * Undoes all changes in steps. Each step gets the time, with which it renews the token of its evaluation. Resolves to
 * false if the evaluation was ended meanwhile.
 */
export async function undoAll(
  nowMs: number,
  undoSome: (nowMs: number) => Promise<UndoStep>,
): Promise<boolean> {
  const startedAtMs = performance.now();
  for (;;) {
    const step = await undoSome(nowMs + Math.round(performance.now() - startedAtMs));
    if (step !== 'some') return step === 'none';
  }
}
