// The figures by which the SQLite store trades latency, memory and disk. Tests make them small.

export interface Tuning {
  /**
   * About how many rows are committed together; uploads beyond it wait for the next commit. The writer holds about a page
   * for each row, and every new call waits for the group at work.
   */
  readonly groupRows: number;
  /** A reading call that has waited longer for its thread is refused. */
  readonly readPatienceMs: number;
  /** Un-checkpointed write-ahead log at which the checkpointer starts. */
  readonly checkpointAfterBytes: number;
  /**
   * Write-ahead log at which it is made to start anew from its beginning: it is copied without pause until the writer can
   * copy the little that is left. At twice this large uploads wait for the copying.
   */
  readonly walLimitBytes: number;
}

const MIB = 1024 * 1024;

export const defaultTuning: Tuning = {
  groupRows: 20_000,
  readPatienceMs: 10_000,
  checkpointAfterBytes: 160 * MIB,
  walLimitBytes: 256 * MIB,
};
