// Defines how a function returns an expected failure.

/** An expected failure. It is returned, never thrown. The reason is for the person who can correct the cause. */
export class Failure {
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }
}
