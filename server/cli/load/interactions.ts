// Sends interactions, which the server takes one by one. Each has a key made of the file's name, its line and its
// content: whoever loads the same file again within the 24 hours for which the server remembers keys records nothing
// twice.

import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import type { ProblemCode } from '@headgate/catalogue/problem-codes.ts';
import {
  AbortedError,
  type HeadgateClient,
  RefusedError,
  type SentInteraction,
} from '@headgate/client/client.ts';
import type { RetryNotice } from '@headgate/client/patience.ts';
import type { Feed } from './feed.ts';
import type { Rejected, RejectedProblem } from './rejected-form.ts';

/** So many are sent, whatever their order, before all of them are settled. */
const GROUP_COUNT = 1000;

export interface InteractionOptions {
  readonly path: string;
  readonly isLenient: boolean;
  readonly concurrency: number;
  readonly signal: AbortSignal;
  onRetry(retry: RetryNotice): void;
  /** Awaits nothing; `nextIndex` is that of the first interaction that is not settled. */
  onGroup(nextIndex: number, count: number, rejected: readonly Rejected[]): void;
}

/** Throws what the client throws when it cannot go on. */
export async function sendInteractions(
  client: HeadgateClient,
  feed: Feed,
  options: InteractionOptions,
): Promise<void> {
  let firstIndex = 0;
  for (let records = await feed.nextRecords(); records !== null; records = await feed.nextRecords()) {
    for (let from = 0; from < records.length; from += GROUP_COUNT) {
      const group = records.slice(from, from + GROUP_COUNT);
      const rejected = await sendGroup(client, feed, group, firstIndex, options);
      firstIndex += group.length;
      options.onGroup(firstIndex, group.length, rejected);
      if (feed.isStopping()) return;
    }
  }
}

async function sendGroup(
  client: HeadgateClient,
  feed: Feed,
  group: readonly unknown[],
  firstIndex: number,
  { path, isLenient, concurrency, signal, onRetry }: InteractionOptions,
): Promise<readonly Rejected[]> {
  const rejected: Rejected[] = [];
  // One that cannot go on ends the others, too.
  const ending = new AbortController();
  const either = AbortSignal.any([signal, ending.signal]);
  let next = 0;
  let failure: unknown = null;
  const worker = async (): Promise<void> => {
    while (next < group.length && failure === null) {
      const place = next++;
      const record = group[place];
      const line = feed.lineOf(firstIndex + place);
      const idempotencyKey = keyOf(path, line, record, isLenient);
      try {
        await client.record(record as SentInteraction, {
          idempotencyKey,
          lenient: isLenient,
          signal: either,
          onRetry,
        });
      } catch (error) {
        const errors = problemsIn(error);
        if (errors !== null) {
          rejected.push({ record, errors, line });
          continue;
        }
        failure ??= error instanceof AbortedError && signal.aborted ? new AbortedError(signal.reason) : error;
        ending.abort();
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, group.length) }, worker));
  if (failure !== null) throw failure;
  return rejected.sort((one, other) => one.line - other.line);
}

/** What is wrong with the interaction itself; null where it is not to blame. */
function problemsIn(error: unknown): readonly RejectedProblem[] | null {
  if (!(error instanceof RefusedError)) return null;
  if (error.details.length > 0) return error.details;
  const code = codesOfStatus[error.status];
  return code === undefined ? null : [{ field: null, code, message: error.message }];
}

/** For the refusals of a body as a whole, which have no details. */
const codesOfStatus: Readonly<Record<number, ProblemCode>> = { 400: 'not_an_object', 413: 'too_long' };

function keyOf(path: string, line: number, record: unknown, isLenient: boolean): string {
  const hash = createHash('sha256').update(JSON.stringify([basename(path), line, record, isLenient]));
  return `load-${hash.digest('hex')}`;
}
