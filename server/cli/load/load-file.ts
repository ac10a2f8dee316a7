// Loads one file, from its beginning or from where an earlier run of the same load stopped.

import { dependenciesOf } from '@headgate/catalogue/references.ts';
import {
  type SentUpload,
  type UploadedSlice,
  UploadInterruptedError,
  type UploadTypeName,
} from '@headgate/client/client.ts';
import type { RetryNotice } from '@headgate/client/patience.ts';
import { type Server, whyFailed } from '../connect.ts';
import { Feed, passOver, type Settled } from './feed.ts';
import { fieldsOf, INTERACTIONS, type LoadType, uploadTypeOf } from './file-types.ts';
import { identified } from './identified.ts';
import type { Confirmed } from './journal.ts';
import { openFile, type PlannedFile, readerOf } from './plan.ts';
import type { Rejected, RejectedProblem } from './rejected-form.ts';
import { Unreadable } from './source.ts';
import { type Counts, noCounts } from './tally.ts';

/** The result for some consecutive records of the file. */
export interface FileOutcome {
  readonly counts: Counts;
  readonly rejected: readonly Rejected[];
  readonly dropped: readonly { readonly field: string | null; readonly count: number }[];
  readonly settled: Settled;
}

export interface LoadingFile {
  readonly server: Server;
  readonly file: PlannedFile;
  /** The part of the file that an earlier run confirmed. */
  readonly confirmed: Confirmed | null;
  readonly isDryRun: boolean;
  readonly isLenient: boolean;
  readonly concurrency: number | null;
  /** In a dry run, the types whose records a real run would have stored. */
  readonly notStored: ReadonlySet<LoadType>;
  readonly signal: AbortSignal;
  isStopping(): boolean;
  onStart(from: { readonly line: number; readonly readBytes: number }): void;
  onRetry(retry: RetryNotice): void;
  /** Called for consecutive parts of the file, in their order. */
  onOutcome(outcome: FileOutcome): void;
}

/** Resolves to null at the end of the file, or to the reason why loading ended before. */
export async function loadFile(loading: LoadingFile): Promise<Unreadable | null> {
  const { file, confirmed, server } = loading;
  const begun = await begin(file, confirmed);
  if (begun === null) return new Unreadable('it was changed during the load');
  if (begun instanceof Unreadable) return begun;
  const { source, rest, place, crc32 } = begun;
  loading.onStart({ line: place.line, readBytes: source.readBytes() });
  const feed = new Feed(
    readerOf(file, rest, place),
    source,
    { offset: place.offset, crc32 },
    file.format !== 'csv',
    loading.isStopping,
  );
  try {
    await uploadRecords(loading, feed);
  } catch (error) {
    const cause = error instanceof UploadInterruptedError ? error.cause : error;
    return new Unreadable(whyFailed(cause, server.url));
  } finally {
    source.close();
  }
  return loading.isStopping() ? new Unreadable('it was interrupted') : feed.broken;
}

/** Resolves to true if the confirmed part of the file is unchanged. A finished file must also have the same size. */
export async function isStillConfirmed(file: PlannedFile, confirmed: Confirmed): Promise<boolean> {
  if (confirmed.isDone && confirmed.sizeBytes !== file.sizeBytes) return false;
  const begun = await begin(file, confirmed);
  if (begun === null || begun instanceof Unreadable) return false;
  begun.source.close();
  return true;
}

/** Opens the file and skips its confirmed part. Resolves to null if that part has changed. */
async function begin(file: PlannedFile, confirmed: Confirmed | null) {
  const source = openFile(file);
  const offset = confirmed?.offset ?? file.start.offset;
  const passed = await passOver(source, offset, confirmed?.crc32 ?? null);
  if (passed === null || passed instanceof Unreadable) {
    source.close();
    return passed;
  }
  return { source, ...passed };
}

async function uploadRecords(loading: LoadingFile, feed: Feed): Promise<void> {
  const { server, file, isDryRun, isLenient, concurrency, signal } = loading;
  const records = file.type === INTERACTIONS ? identified(feed, file.path) : feed.records();
  await server.client.upload(uploadTypeOf(file.type), records as AsyncIterable<SentUpload>, {
    dryRun: isDryRun,
    lenient: isLenient,
    signal,
    ...(concurrency === null ? {} : { concurrency }),
    onRetry: loading.onRetry,
    onSlice: (slice) => loading.onOutcome(outcomeOf(slice, feed, loading)),
  });
}

function outcomeOf(
  { firstIndex, count, counts, rejected, warnings }: UploadedSlice<UploadTypeName>,
  feed: Feed,
  { file, notStored }: LoadingFile,
): FileOutcome {
  const placed = rejected.map(({ index, record, errors }) => ({
    record: record ?? null,
    errors,
    ...feed.placeOf(index),
  }));
  const unsure = unstoredReferences(file.type, notStored);
  const flawed = placed.flatMap((one) => {
    const certain = one.errors.filter((error) => !unsure(error));
    return certain.length === 0 ? [] : [{ ...one, errors: certain }];
  });
  const unchecked = placed.length - flawed.length;
  return {
    counts: { ...noCounts(), ...counts, rejected: counts.rejected - unchecked, unchecked },
    rejected: flawed,
    dropped: warnings,
    settled: feed.settle(firstIndex + count),
  };
}

/**
 * Returns a function that returns true for a problem that the dry run may have caused itself: a reference to a record
 * of a type that a real run would have stored before.
 */
function unstoredReferences(
  type: LoadType,
  notStored: ReadonlySet<LoadType>,
): (problem: RejectedProblem) => boolean {
  const fields = fieldsOf(type);
  return ({ code, field }) =>
    code === 'unknown_reference' &&
    field !== null &&
    Object.hasOwn(fields, field) &&
    dependenciesOf({ [field]: fields[field]! }).some((target) => notStored.has(target as LoadType));
}
