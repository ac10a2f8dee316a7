// What takes part: something that takes in records, started on a store of its own, measured, stopped.

import { type PreparedChild, prepareChild } from '../../tests/harness/prepared-child.ts';
import { makeRecordTexts } from '../load/record-texts.ts';
import type { Timed, UploadJob, UploadOrder, UploadTarget } from '../load/uploads.ts';

export interface Contender {
  readonly name: string;
  /** On a new store that holds so many transactions, and the shops that transactions refer to. */
  start(rowsPresent: number): Promise<RunningContender>;
}

export interface RunningContender {
  /** Uploads it all, and says how long that took. Called again with the same order, the records are there already. */
  upload(order: UploadOrder): Promise<Timed>;
  stop(): Promise<void>;
}

/** How one that takes records over HTTP is measured. `durationMs`: send the bodies, revised, again and again for so long. */
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
