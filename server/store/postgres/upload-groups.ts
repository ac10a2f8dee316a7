// Writes the small uploads of an organisation in groups. Only one transaction at a time can take the next number of the
// organisation's ledger, and a commit takes longer than a small upload. So uploads that arrive during a commit form the
// next group, which waits for the disk and the network only once.

import { settledWithin } from '../../settled-within.ts';
import type { OrganisationNumber } from '../rows.ts';
import { StoreUnavailable } from '../store.ts';
import { GivenUp, isOfStatement } from './errors.ts';

interface Waiting<Upload, Result> {
  readonly upload: Upload;
  readonly keys: readonly string[];
  resolve(result: Result): void;
  reject(error: unknown): void;
}

export interface UploadGroupOptions<Upload, Result> {
  organisationOf(upload: Upload): OrganisationNumber;
  /** Returns the keys of the upload's rows. Two uploads with the same key are not written in one group. */
  keysOf(upload: Upload): readonly string[];
  write(organisation: OrganisationNumber, group: readonly Upload[]): Promise<readonly Result[]>;
}

/** A group usually takes some milliseconds. The uploads behind a group that takes this long do not wait for it. */
const SLOW_AFTER_MS = 1000;

/** Returns a function that writes an upload as part of a group. */
export function groupUploads<Upload, Result>(
  { organisationOf, keysOf, write }: UploadGroupOptions<Upload, Result>,
  slowAfterMs = SLOW_AFTER_MS,
): (upload: Upload) => Promise<Result> {
  const lines = new Map<OrganisationNumber, Waiting<Upload, Result>[]>();

  /** Takes the uploads of the next group out of the line. */
  const takeGroup = (line: Waiting<Upload, Result>[]): readonly Waiting<Upload, Result>[] => {
    const taken = new Set<string>();
    const group: Waiting<Upload, Result>[] = [];
    for (const waiting of line.splice(0)) {
      if (waiting.keys.some((key) => taken.has(key))) line.push(waiting);
      else {
        for (const key of waiting.keys) taken.add(key);
        group.push(waiting);
      }
    }
    return group;
  };

  const writeGroup = async (
    organisation: OrganisationNumber,
    group: readonly Waiting<Upload, Result>[],
  ): Promise<void> => {
    try {
      const results = await write(
        organisation,
        group.map(({ upload }) => upload),
      );
      group.forEach(({ resolve }, position) => {
        resolve(results[position]!);
      });
    } catch (error) {
      // One of the uploads may be at fault, for example because another transaction has locked its rows. It must not
      // make the others fail.
      const isOfOne =
        !(error instanceof StoreUnavailable) || isOfStatement(error) || error instanceof GivenUp;
      if (isOfOne && group.length > 1) {
        await Promise.all(group.map((waiting) => writeGroup(organisation, [waiting])));
      } else for (const { reject } of group) reject(error);
    }
  };

  const writeLine = async (
    organisation: OrganisationNumber,
    line: Waiting<Upload, Result>[],
  ): Promise<void> => {
    while (line.length > 0) await settledWithin(writeGroup(organisation, takeGroup(line)), slowAfterMs);
    lines.delete(organisation);
  };

  return (upload) => {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const organisation = organisationOf(upload);
    const line = lines.get(organisation) ?? [];
    if (line.push({ upload, keys: keysOf(upload), resolve, reject }) === 1 && !lines.has(organisation)) {
      lines.set(organisation, line);
      // The uploads of this turn of the event loop form the first group.
      setImmediate(() => void writeLine(organisation, line));
    }
    return promise;
  };
}
