// How often a key may ask: a token bucket per key that holds one second's worth of requests.

export interface RateDecision {
  readonly allowed: boolean;
  /** Requests per second. */
  readonly limit: number;
  /** Requests that could be made at once, after this one. */
  readonly remaining: number;
  /** Until the bucket is full again, rounded up. */
  readonly resetSeconds: number;
  /** Until the next request can be allowed, rounded up; 0 when this one was. */
  readonly retryAfterSeconds: number;
}

export interface RateLimiter {
  take(keyId: string, nowMs: number): RateDecision;
  /** How many buckets are in memory. */
  readonly size: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

const FULL_AFTER_MS = 1000;

/** Null where the rate is off. */
export function rateLimiter(perSecond: number | null): RateLimiter | null {
  if (perSecond === null) return null;
  // In the order of last use: every use moves its bucket to the end.
  const buckets = new Map<string, Bucket>();

  /** A bucket unused for a second is full, and a full bucket says no more than a missing one. */
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
