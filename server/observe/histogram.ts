// A distribution of durations in fixed buckets, as Prometheus takes it. Observing one costs next to nothing.

export const bucketSeconds = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
] as const;

export class Histogram {
  /** Per bucket, not added up; the last is for all that is longer. */
  readonly #counts = new Array<number>(bucketSeconds.length + 1).fill(0);
  #sumSeconds = 0;

  observeMs(ms: number): void {
    const seconds = ms / 1000;
    let at = 0;
    while (at < bucketSeconds.length && seconds > bucketSeconds[at]!) at++;
    this.#counts[at]!++;
    this.#sumSeconds += seconds;
  }

  /** As Prometheus names them: each bucket holds all that is not longer than its bound. */
  samples(): readonly { readonly suffix: string; readonly le?: string; readonly value: number }[] {
    let total = 0;
    const buckets = this.#counts.map((count, at) => {
      total += count;
      const le = at < bucketSeconds.length ? String(bucketSeconds[at]) : '+Inf';
      return { suffix: '_bucket', le, value: total };
    });
    return [...buckets, { suffix: '_sum', value: this.#sumSeconds }, { suffix: '_count', value: total }];
  }
}
