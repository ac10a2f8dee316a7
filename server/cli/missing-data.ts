// Says in the same words for every command which part of the data a result lacks.

import type { AsOf } from '@headgate/client/client.ts';

/** Returns null if the result has seen everything. */
export function missingData({ seq, complete }: AsOf): string | null {
  if (complete) return null;
  return seq === 0
    ? 'the copy of the data is still being made, so a part of the data is missing; try again later'
    : 'later uploads are not included yet';
}
