// Uploads transactions without pause from several connections, in a process of its own, so that it does not disturb
// measurements in other processes. Every upload has new ids.

import { prepareChild, takeOrder } from './prepared-child.ts';
import { leastRecord } from './records.ts';
import { RenewedUpload } from './renewed-upload.ts';
import { sendUploads } from './upload-clients.ts';

export interface LoadOrder {
  readonly url: string;
  readonly key: string;
  readonly shopId: string;
  readonly clients: number;
  readonly recordsPerUpload: number;
  readonly durationMs: number;
}

export interface LoadResult {
  readonly records: number;
  readonly uploads: number;
  readonly elapsedMs: number;
}

/** Resolves when all bodies are ready and the first are being sent. `ended` resolves when all have a response. */
export async function startTransactionLoad(order: LoadOrder): Promise<{ ended: Promise<LoadResult> }> {
  const load = await prepareChild<LoadOrder, LoadResult>(new URL(import.meta.url), order);
  return { ended: load.run() };
}

if (import.meta.main) {
  takeOrder<LoadOrder, LoadResult>(async ({ url, key, shopId, clients, recordsPerUpload, durationMs }) => {
    const to = { url: `${url}/v1/data/transactions`, headers: { Authorization: `Bearer ${key}` } };
    const transaction = (id: string) => leastRecord('transactions', { transaction_id: id, shop_id: shopId });
    const bodies = Array.from({ length: clients }, () => new RenewedUpload(recordsPerUpload, transaction));
    return async () => {
      const endsAtMs = performance.now() + durationMs;
      const nextBody = (client: number): Buffer | null =>
        performance.now() < endsAtMs ? bodies[client]!.withNewIds() : null;
      const { uploads, elapsedMs } = await sendUploads({ to, clients, nextBody });
      return { records: uploads * recordsPerUpload, uploads, elapsedMs };
    };
  });
}
