// The limits of the server that the API description names, as its settings have them.

export interface ApiLimits {
  readonly maxRecords: number;
  readonly batchSize: number;
  readonly maxBodyBytes: number;
  /** Null where the rate is not limited. */
  readonly rateLimitPerSecond: number | null;
}
