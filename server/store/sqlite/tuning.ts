// The settings that balance latency, memory and disk use in the SQLite store. Tests use small values.

export interface Tuning {
  /**
   * The approximate number of rows in one commit. Further uploads wait for the next commit. A larger number costs
   * memory, because the writer holds about one page per row, and time, because every new call waits for the current
   * commit.
   */
  readonly groupRows: number;
  /** A read fails if it has waited longer than this for its thread. */
  readonly readPatienceMs: number;
  /** The checkpointer starts when more of the write-ahead log than this is not yet copied into the database file. */
  readonly checkpointAfterBytes: number;
  /**
   * Above this size, the write-ahead log has to restart from its beginning: the checkpointer copies it without pause,
   * until the rest is small enough for the writer to copy. Above twice this size, large uploads wait for the copying.
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
