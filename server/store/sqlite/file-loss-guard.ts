// Handles the loss of a database file: the writer acknowledges no further writes, and saves the contents of the log if
// it can.

import { StoreUnavailable } from '../store.ts';
import type { FileWatch, Loss } from './file-identity.ts';
import { type CallResult, failed } from './thread-calls.ts';
import type { WalKeeper } from './wal.ts';

export interface LossGuard {
  /**
   * Runs `commit`, or fails all calls if the files are not in place. If the files are no longer in place after the
   * commit, the calls that succeeded fail as well: a commit to a file that is not at its path may be lost at any time,
   * so it must not be acknowledged.
   */
  guarded(callCount: number, commit: () => readonly CallResult[]): readonly CallResult[];
  isLost(): boolean;
  /** Must be called before the database is closed. */
  close(): void;
}

/** Calls `reportTrouble` once for each loss, and again if the log had to be renamed. */
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

  /** Saves the contents of the log if that is possible. Returns false if saving has to be retried. */
  const save = ({ kind }: Loss): boolean => {
    // Only this process can still read the log, and the database is in place, so the log is copied into the database.
    if (kind === 'log gone') return wal.copyAll();
    if (kind === 'replaced') setLogAside();
    return true;
  };

  const setLogAside = (): void => {
    try {
      const aside = watch.setLogAside();
      if (aside === null) return;
      reportTrouble(
        `the log of the lost database is kept as ${aside}: before you open that database again, rename the log ` +
          'to the name of the database with -wal appended',
      );
    } catch (error) {
      reportTrouble(
        `the log of the lost database could not be renamed; move it away before the server is started ` +
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
      // Renames the log, because SQLite would delete it if the next start creates a new database at the path.
      if (findLoss()?.kind === 'gone') setLogAside();
    },
  };
}
