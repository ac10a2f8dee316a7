// Declares the server's limits that the API description states. They come from the settings.

export interface ApiLimits {
  readonly maxRecords: number;
  readonly batchSize: number;
  readonly maxBodyBytes: number;
  /** Null if the rate is not limited. */
  readonly rateLimitPerSecond: number | null;
}
