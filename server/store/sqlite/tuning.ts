// The settings that balance latency, memory and disk use in the SQLite store. Tests use small values.

export interface Tuning {
  /**
   * The approximate number of rows in one commit; further uploads wait for the next one. The writer holds about one
   * page per row in memory, and every new call waits for the current group.
   */
  readonly groupRows: number;
  /** A read that has waited longer for its thread fails. */
  readonly readPatienceMs: number;
  /** The checkpointer starts when this much of the write-ahead log is not copied. */
  readonly checkpointAfterBytes: number;
  /**
   * The size of the write-ahead log at which it has to restart from its beginning: it is copied without pause until the
   * writer can copy the small rest. At twice this size, large uploads wait for the copying.
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
