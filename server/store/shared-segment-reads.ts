// Lets simultaneous reads of an organisation's segments share one read of the store. All segments together can take a
// megabyte, and almost every request about segments needs them.

import type { OrganisationNumber } from './rows.ts';
import type { SegmentSet, SegmentStore } from './segments.ts';

interface Line {
  readonly current: Promise<SegmentSet>;
  /** The read that begins when the current one has ended, for everybody who asks meanwhile. */
  next: Promise<SegmentSet> | null;
}

/**
 * Returns the store, except that at most one read of an organisation's segments runs at a time. A read begins after all
 * calls that get its result, so nobody gets an older state than with a read of their own.
 */
export function withSharedSegmentReads<Reads extends Pick<SegmentStore, 'segments'>>(store: Reads): Reads {
  const lines = new Map<OrganisationNumber, Line>();
  const begin = (organisation: OrganisationNumber): Promise<SegmentSet> => {
    const current = store.segments(organisation);
    const line: Line = { current, next: null };
    lines.set(organisation, line);
    const end = (): void => {
      if (line.next === null) lines.delete(organisation);
    };
    current.then(end, end);
    return current;
  };
  const segments = (organisation: OrganisationNumber): Promise<SegmentSet> => {
    const line = lines.get(organisation);
    if (line === undefined) return begin(organisation);
    const beginNext = (): Promise<SegmentSet> => begin(organisation);
    line.next ??= line.current.then(beginNext, beginNext);
    return line.next;
  };
  return { ...store, segments };
}
