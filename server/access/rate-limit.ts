// Limits the request rate of each key, with a token bucket that holds the requests of one second.

export interface RateDecision {
  readonly allowed: boolean;
  /** Requests per second. */
  readonly limit: number;
  /** How many more requests are allowed right after this one. */
  readonly remaining: number;
  /** The time until the bucket is full again, rounded up. */
  readonly resetSeconds: number;
  /** The time until the next request is allowed, rounded up. 0 if this request was allowed. */
  readonly retryAfterSeconds: number;
}

export interface RateLimiter {
  take(keyId: string, nowMs: number): RateDecision;
  /** The number of buckets in memory. */
  readonly size: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

const FULL_AFTER_MS = 1000;

/** Returns null if the rate limit is off. */
export function rateLimiter(perSecond: number | null): RateLimiter | null {
  if (perSecond === null) return null;
  // Ordered by last use, because every use moves its bucket to the end.
  const buckets = new Map<string, Bucket>();

  /** Deletes the buckets that were unused for a second: they are full, and a missing bucket counts as full. */
  const dropFullBuckets = (nowMs: number): void => {
    for (const [keyId, { atMs }] of buckets) {
      if (nowMs - atMs < FULL_AFTER_MS) return;
      buckets.delete(keyId);
    }
  };

  return {
    get size() {
      return buckets.size;
    },
    take(keyId, nowMs) {
      dropFullBuckets(nowMs);
      const bucket = buckets.get(keyId) ?? { tokens: perSecond, atMs: nowMs };
      const elapsedMs = Math.max(0, nowMs - bucket.atMs);
      const tokens = Math.min(perSecond, bucket.tokens + (elapsedMs * perSecond) / 1000);
      const allowed = tokens >= 1;
      bucket.tokens = allowed ? tokens - 1 : tokens;
      bucket.atMs = nowMs;
      buckets.delete(keyId);
      buckets.set(keyId, bucket);
      return {
        allowed,
        limit: perSecond,
        remaining: Math.floor(bucket.tokens),
        resetSeconds: Math.ceil((perSecond - bucket.tokens) / perSecond),
        retryAfterSeconds: allowed ? 0 : Math.ceil((1 - tokens) / perSecond),
      };
    },
  };
}
