// What the writer does when a file of its database is no longer at its path: it acknowledges nothing, and saves what
// the log still holds.

import { StoreUnavailable } from '../store.ts';
import { failed, type Outcome } from './calls.ts';
import type { FileWatch, Loss } from './file-identity.ts';
import type { WalKeeper } from './wal.ts';

export interface LossGuard {
  /**
   * Runs the calls if the files are in place, and fails them if the files are not, before or after. What was committed
   * to a file that is no longer at its path may be gone at any time, so it must not be acknowledged.
   */
  guarded(callCount: number, commit: () => readonly Outcome[]): readonly Outcome[];
  isLost(): boolean;
  /** To be called before the database is closed. */
  close(): void;
}

/** `reportTrouble` is called once per loss. */
export function guardFiles(
  watch: FileWatch,
  wal: WalKeeper,
  reportTrouble: (trouble: string) => void,
): LossGuard {
  let known: Loss['kind'] | null = null;
  let isSaved = false;

  const findLoss = (): Loss | null => {
    const loss = watch.loss();
    if (loss?.kind !== known) {
      known = loss?.kind ?? null;
      isSaved = false;
      if (loss !== null) reportTrouble(loss.message);
    }
    if (loss !== null && !isSaved) isSaved = save(loss);
    return loss;
  };

  /** Returns whether there is nothing left to do. */
  const save = ({ kind }: Loss): boolean => {
    // The log exists only in this process, and the database is in place to take it.
    if (kind === 'log gone') return wal.copyAll();
    if (kind === 'replaced') setLogAside();
    return true;
  };

  const setLogAside = (): void => {
    try {
      const aside = watch.setLogAside();
      if (aside === null) return;
      reportTrouble(
        `the log of the database that is lost is kept as ${aside}: before you open that database again, rename the log ` +
          'to the name of the database with -wal appended',
      );
    } catch (error) {
      reportTrouble(
        `the log of the database that is lost could not be renamed; move it away before the server is started ` +
          `again, because it would spoil another database: ${(error as Error).message}`,
      );
    }
  };

  return {
    guarded(callCount, commit) {
      const before = findLoss();
      if (before !== null) {
        const outcome = failed(new StoreUnavailable(before.message));
        return Array.from({ length: callCount }, () => outcome);
      }
      const outcomes = commit();
      const after = findLoss();
      if (after === null) return outcomes;
      const outcome = failed(new StoreUnavailable(after.message));
      return outcomes.map((given) => (given.kind === 'done' ? outcome : given));
    },
    isLost: () => known !== null,
    close() {
      // A database that is made at the path by the next start would delete the log.
      if (findLoss()?.kind === 'gone') setLogAside();
    },
  };
}
