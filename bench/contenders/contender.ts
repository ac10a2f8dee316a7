// The interface of a contender: a service or program that stores records. A contender is started on a store of its own,
// measured, and stopped.

import { type PreparedChild, prepareChild } from '../../tests/harness/prepared-child.ts';
import { makeRecordTexts } from '../load/record-texts.ts';
import type { Timed, UploadJob, UploadOrder, UploadTarget } from '../load/uploads.ts';

export interface Contender {
  readonly name: string;
  /** Starts on a new store that contains `rowsPresent` transactions and the shops that transactions refer to. */
  start(rowsPresent: number): Promise<RunningContender>;
}

export interface RunningContender {
  /** Uploads all records and measures the time. With the same `order`, a second call uploads the same records again. */
  upload(order: UploadOrder): Promise<Timed>;
  stop(): Promise<void>;
}

/**
 * Prepares an upload over HTTP. With `durationMs`, the bodies are sent repeatedly for that time, with different values
 * each time.
 */
export function prepareUploadOverHttp(
  target: UploadTarget,
  order: UploadOrder,
  durationMs: number | null = null,
): Promise<PreparedChild<Timed>> {
  makeRecordTexts(order);
  return prepareChild<UploadJob, Timed>(new URL('../load/uploads.ts', import.meta.url), {
    target,
    order,
    durationMs,
  });
}

export async function uploadOverHttp(target: UploadTarget, order: UploadOrder): Promise<Timed> {
  return (await prepareUploadOverHttp(target, order)).run();
}
