// Reports how far the first build of a replica is. A short build is not reported.

import type { UploadTypeName } from '@headgate/catalogue/record-types.ts';

export class BuildProgress {
  readonly #report: (message: string) => void;
  readonly #everyMs: number;
  #rows = 0;
  #reportedAtMs = performance.now();
  #isReported = false;

  constructor(report: (message: string) => void, everyMs: number) {
    this.#report = report;
    this.#everyMs = everyMs;
  }

  /** Notes that rows were copied. */
  add(type: UploadTypeName, rows: number): void {
    this.#rows += rows;
    const nowMs = performance.now();
    if (rows === 0 || nowMs - this.#reportedAtMs < this.#everyMs) return;
    this.#reportedAtMs = nowMs;
    this.#isReported = true;
    this.#report(`the replica is being built: ${this.#rows} rows are copied, the last ones of ${type}`);
  }

  end(): void {
    if (this.#isReported) this.#report(`the replica is built: ${this.#rows} rows were copied`);
  }
}
