// The clock of spans.

/** The time of day, at the precision of the monotonic clock. */
export function epochMs(): number {
  return performance.timeOrigin + performance.now();
}
