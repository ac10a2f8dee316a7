// Counts the results of a load by type, and groups the reasons for rejections. The tally is stored in the journal, so
// it is plain data.

import type { ProblemCode } from '@headgate/catalogue/problem-codes.ts';
import { type LoadType, loadOrder } from './file-types.ts';
import type { Rejected } from './rejected-form.ts';

export interface Counts {
  received: number;
  created: number;
  updated: number;
  unchanged: number;
  rejected: number;
  /**
   * Records that a dry run cannot check: all interactions, and records whose only problem is a reference to a type that
   * a real run would have stored before.
   */
  unchecked: number;
}

export interface Example {
  readonly file: string;
  readonly line: number | null;
  readonly field: string | null;
  readonly message: string;
}

export interface ProblemGroup {
  readonly type: LoadType;
  readonly code: ProblemCode;
  /** The number of records with this problem. A record may have several problems. */
  records: number;
  readonly examples: Example[];
}

export interface Tally {
  readonly types: { [Type in LoadType]?: Counts };
  readonly problems: ProblemGroup[];
  /** How often a lenient upload dropped each field. */
  readonly dropped: { [typeAndField: string]: number };
}

const MOST_EXAMPLES = 3;

export function newTally(): Tally {
  return { types: {}, problems: [], dropped: {} };
}

export function noCounts(): Counts {
  return { received: 0, created: 0, updated: 0, unchanged: 0, rejected: 0, unchecked: 0 };
}

export function countsOf(tally: Tally, type: LoadType): Counts {
  tally.types[type] ??= noCounts();
  return tally.types[type];
}

export function addCounts(to: Counts, from: Readonly<Partial<Counts>>): void {
  for (const [name, count] of Object.entries(from)) to[name as keyof Counts] += count;
}

export function addRejected(tally: Tally, type: LoadType, file: string, { errors, line }: Rejected): void {
  for (const code of new Set(errors.map((error) => error.code))) {
    let group = tally.problems.find((known) => known.type === type && known.code === code);
    if (group === undefined) {
      group = { type, code, records: 0, examples: [] };
      tally.problems.push(group);
    }
    group.records++;
    if (group.examples.length >= MOST_EXAMPLES) continue;
    const { field, message } = errors.find((error) => error.code === code)!;
    group.examples.push({ file, line, field, message });
  }
}

/** Returns the loaded types with their counts, in the order of loading. */
export function typesIn(tally: Tally): readonly { readonly type: LoadType; readonly counts: Counts }[] {
  return loadOrder.flatMap((type) => (tally.types[type] ? [{ type, counts: tally.types[type] }] : []));
}

export function totalOf(tally: Tally): Counts {
  const total = noCounts();
  for (const { counts } of typesIn(tally)) addCounts(total, counts);
  return total;
}
