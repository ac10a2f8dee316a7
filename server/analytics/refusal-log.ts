// Reports why replicas cannot be used. Clients try again and again, so the same reason is reported once a minute.

const SAME_REFUSAL_MS = 60_000;
/** At most this many reasons of an organisation are reported in a minute, so that nobody can fill the log. */
const MOST_REFUSALS = 10;

export class RefusalLog {
  readonly #report: (message: string) => void;
  /** The reasons that were reported in the last minute, and when. */
  readonly #refusals = new Map<string, number>();

  constructor(report: (message: string) => void) {
    this.#report = report;
  }

  add(orgId: string, reason: string): void {
    const nowMs = performance.now();
    for (const [refusal, atMs] of this.#refusals) {
      if (nowMs - atMs >= SAME_REFUSAL_MS) this.#refusals.delete(refusal);
    }
    // Some reasons contain the number of a block or the name of a new file, which consists of hexadecimal digits.
    const refusal = `${orgId} ${reason.replaceAll(/[\da-f]/gi, '')}`;
    const reported = [...this.#refusals.keys()].filter((other) => other.startsWith(`${orgId} `));
    if (reported.includes(refusal) || reported.length >= MOST_REFUSALS) return;
    this.#refusals.set(refusal, nowMs);
    const line = reason.replaceAll('\n', ' ');
    this.#report(`organisation ${orgId}: a query was refused, because the replica cannot be used: ${line}`);
  }
}
