// Sends interactions, each in its own request. The idempotency key of an interaction is derived from the file name, the
// line and the content, so loading a file again within 24 hours stores nothing twice. A file of rejected interactions
// keeps the original file name and line of each interaction, so that the key stays the same.
//
// The server also replays a refusal for the same key, even if the cause has been fixed since. If a refusal is replayed,
// the interaction is sent again with the next key of a series. The series is the same in every run.

import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import type { ProblemCode } from '@headgate/catalogue/problem-codes.ts';
import { AbortedError, RefusedError, type SentInteraction } from '@headgate/client/client.ts';
import type { Feed } from './feed.ts';
import type { LoadingFile } from './load-file.ts';
import type { Rejected, RejectedProblem } from './rejected-form.ts';

/** The number of interactions in a group. Groups are sent in order, the interactions of a group in any order. */
const GROUP_COUNT = 1000;
const INTERACTIONS_AT_ONCE = 32;
/** The number of keys in a series. After this many refusals within 24 hours, the last refusal is replayed. */
const MOST_KEYS = 50;

export interface SentGroup {
  readonly count: number;
  /** The number of interactions that were already recorded by an earlier run. */
  readonly unchanged: number;
  readonly rejected: readonly Rejected[];
}

/**
 * Sends all interactions of the feed. Throws the client's error if the load cannot continue. `onGroup` is called with
 * the index of the first interaction that is not settled.
 */
export async function sendInteractions(
  loading: LoadingFile,
  feed: Feed,
  onGroup: (nextIndex: number, group: SentGroup) => void,
): Promise<void> {
  let firstIndex = 0;
  for (let records = await feed.nextRecords(); records !== null; records = await feed.nextRecords()) {
    for (let from = 0; from < records.length; from += GROUP_COUNT) {
      const group = records.slice(from, from + GROUP_COUNT);
      const sent = await sendGroup(loading, feed, group, firstIndex);
      firstIndex += group.length;
      onGroup(firstIndex, sent);
      if (loading.isStopping()) return;
    }
  }
}

async function sendGroup(
  loading: LoadingFile,
  feed: Feed,
  group: readonly unknown[],
  firstIndex: number,
): Promise<SentGroup> {
  const { file, isLenient, signal } = loading;
  const concurrency = loading.concurrency ?? INTERACTIONS_AT_ONCE;
  const rejected: Rejected[] = [];
  let unchanged = 0;
  // The first fatal error aborts the other requests.
  const ending = new AbortController();
  const either = AbortSignal.any([signal, ending.signal]);
  let next = 0;
  let failure: unknown = null;
  const worker = async (): Promise<void> => {
    while (next < group.length && failure === null) {
      const place = next++;
      const record = group[place];
      const { line, origin } = feed.placeOf(firstIndex + place);
      try {
        const key = keyOf(origin?.file ?? file.path, origin?.line ?? line, record, isLenient);
        if ((await send(loading, record, key, either)) === 'unchanged') unchanged++;
      } catch (error) {
        const errors = problemsIn(error);
        if (errors !== null) {
          rejected.push({ record, errors, line, origin });
          continue;
        }
        failure ??= error instanceof AbortedError && signal.aborted ? new AbortedError(signal.reason) : error;
        ending.abort();
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, group.length) }, worker));
  if (failure !== null) throw failure;
  rejected.sort((one, other) => (one.line ?? 0) - (other.line ?? 0));
  return { count: group.length, unchanged, rejected };
}

/** Sends one interaction. Throws the first error that is not a replayed refusal, or the refusal of the last key. */
async function send(
  { server, isLenient, onRetry }: LoadingFile,
  record: unknown,
  firstKey: string,
  signal: AbortSignal,
): Promise<'created' | 'unchanged'> {
  for (let number = 1; ; number++) {
    let isReplayed = false;
    let isRetried = false;
    try {
      await server.client.record(record as SentInteraction, {
        idempotencyKey: number === 1 ? firstKey : `${firstKey}-${number}`,
        lenient: isLenient,
        signal,
        onRetry: (retry) => {
          isRetried = true;
          onRetry(retry);
        },
        onReplayed: () => {
          isReplayed = true;
        },
      });
      // After a retry, the interaction was most likely recorded by the attempt whose response was lost.
      return isReplayed && !isRetried ? 'unchanged' : 'created';
    } catch (error) {
      const isRemembered = error instanceof RefusedError && error.replayed;
      if (!isRemembered || number === MOST_KEYS) throw error;
    }
  }
}

/** Returns the problems of the interaction itself, or null if the error has another cause. */
function problemsIn(error: unknown): readonly RejectedProblem[] | null {
  if (!(error instanceof RefusedError)) return null;
  if (error.details.length > 0) return error.details;
  const code = codesOfStatus[error.status];
  return code === undefined ? null : [{ field: null, code, message: error.message }];
}

/** The problem codes for responses that refuse the whole body. Such a response has a status, but no details. */
const codesOfStatus: Readonly<Record<number, ProblemCode>> = { 400: 'not_an_object', 413: 'too_long' };

function keyOf(path: string, line: number | null, record: unknown, isLenient: boolean): string {
  const hash = createHash('sha256').update(JSON.stringify([basename(path), line, record, isLenient]));
  return `load-${hash.digest('hex')}`;
}
