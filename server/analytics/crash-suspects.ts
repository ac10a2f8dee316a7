// Finds out which organisation's queries end the analytics process, and pauses its analytics for a while. A file marks
// each organisation while it uses its replica. If the process ends, the next one finds the files.

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** How long an organisation is suspected after the process ended during its query, or after its pause. */
export const SUSPECTED_MS = 5 * 60_000;
const FIRST_PAUSE_MS = 30_000;
const LONGEST_PAUSE_MS = 10 * 60_000;

interface Suspect {
  readonly untilMs: number;
  /** How often its queries have ended the process. */
  readonly crashes: number;
  readonly pausedUntilMs: number;
}

/** Thrown if an organisation cannot use its replica, because its queries have ended the process. */
export class AnalyticsPaused extends Error {
  readonly retryAfterS: number;

  constructor(pausedMs: number) {
    const retryAfterS = Math.ceil(pausedMs / 1000);
    super(
      `A query of this organisation ended the process that runs queries: it probably needed too much memory, or could not be stopped. Analytics is paused for this organisation for ${retryAfterS} s. Change the query, or the condition of the segment, before you try again.`,
    );
    this.retryAfterS = retryAfterS;
  }
}

/**
 * When the process has ended, everybody who used a replica is suspected. Suspects hardly ever use their replicas at the
 * same time (see replicas.ts). So if the process ends again while one suspect uses its replica, that one is the culprit.
 */
export class CrashSuspects {
  readonly #marks: string;
  readonly #file: string;
  readonly #report: (message: string) => void;
  readonly #nowMs: () => number;
  readonly #suspects: Map<string, Suspect>;

  /** `path` is the beginning of the paths of a folder and a file, which the next process finds. */
  constructor(path: string, report: (message: string) => void, nowMs: () => number = Date.now) {
    this.#marks = `${path}.running`;
    this.#file = `${path}.suspects`;
    this.#report = report;
    this.#nowMs = nowMs;
    this.#suspects = new Map(Object.entries(readSuspects(this.#file)));
    mkdirSync(this.#marks, { recursive: true });
    this.#suspect(readdirSync(this.#marks));
    this.removeMarks();
    mkdirSync(this.#marks);
  }

  isSuspect(orgId: string): boolean {
    return (this.#suspects.get(orgId)?.untilMs ?? 0) > this.#nowMs();
  }

  /** Throws an AnalyticsPaused if the organisation's analytics is paused. */
  refusePaused(orgId: string): void {
    const pausedMs = (this.#suspects.get(orgId)?.pausedUntilMs ?? 0) - this.#nowMs();
    if (pausedMs > 0) throw new AnalyticsPaused(pausedMs);
  }

  mark(orgId: string): void {
    writeIfPossible(join(this.#marks, orgId), '');
  }

  unmark(orgId: string): void {
    rmSync(join(this.#marks, orgId), { force: true });
  }

  /**
   * Call this before the process ends, with the organisations that can be the reason. One alone is paused at once; several
   * are suspected. If there is none, everybody who is marked is suspected.
   */
  accuse(orgIds: ReadonlySet<string>): void {
    const [first, second] = orgIds;
    if (first === undefined) return;
    this.removeMarks();
    if (second === undefined) {
      this.#blame(first);
      return;
    }
    mkdirSync(this.#marks, { recursive: true });
    for (const orgId of orgIds) this.mark(orgId);
  }

  /** Removes all marks, because the end of the process is nobody's fault, or that of a known organisation. */
  removeMarks(): void {
    rmSync(this.#marks, { recursive: true, force: true });
  }

  /** Pauses the analytics of an organisation whose query ended the process. That explains why it ended for the others. */
  #blame(orgId: string): void {
    const nowMs = this.#nowMs();
    const crashes = (this.isSuspect(orgId) ? this.#suspects.get(orgId)!.crashes : 0) + 1;
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (crashes - 1), LONGEST_PAUSE_MS);
    for (const [other, suspect] of this.#suspects) if (suspect.crashes === 0) this.#suspects.delete(other);
    const pausedUntilMs = nowMs + pauseMs;
    this.#suspects.set(orgId, { untilMs: pausedUntilMs + SUSPECTED_MS, crashes, pausedUntilMs });
    this.#save();
    this.#report(
      `organisation ${orgId}: its query ended the analytics process; its analytics is paused for ${pauseMs / 1000} s`,
    );
  }

  /** Suspects the organisations that were marked when the last process ended. */
  #suspect(marked: readonly string[]): void {
    if (marked.length === 0) return;
    const known = marked.filter((orgId) => this.isSuspect(orgId));
    if (known.length === 1) {
      this.#blame(known[0]!);
      return;
    }
    const untilMs = this.#nowMs() + SUSPECTED_MS;
    for (const orgId of marked) {
      const suspect = known.includes(orgId) ? this.#suspects.get(orgId)! : { crashes: 0, pausedUntilMs: 0 };
      this.#suspects.set(orgId, { ...suspect, untilMs });
    }
    this.#save();
  }

  #save(): void {
    for (const orgId of this.#suspects.keys()) if (!this.isSuspect(orgId)) this.#suspects.delete(orgId);
    writeIfPossible(this.#file, JSON.stringify(Object.fromEntries(this.#suspects)));
  }
}

/** If the disk is full or the folder was deleted, queries run nevertheless. */
function writeIfPossible(path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch {}
}

/** Returns nobody if the file does not exist, or was not written completely. */
function readSuspects(path: string): Record<string, Suspect> {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Record<string, Suspect>;
  } catch {
    return {};
  }
}
