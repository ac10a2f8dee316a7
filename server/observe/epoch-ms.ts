// Provides the clock for the spans of traces.

/** Returns the milliseconds since 1970, with the precision of the monotonic clock. */
export function epochMs(): number {
  return performance.timeOrigin + performance.now();
}
