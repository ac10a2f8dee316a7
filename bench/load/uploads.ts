// Generates the load of uploads: a process that prepares all bodies as bytes and sends them on several connections.

import { takeOrder } from '../../tests/harness/prepared-child.ts';
import { sendUploads, type UploadAddress } from '../../tests/harness/upload-clients.ts';
import { type RecordsOrder, recordTexts } from './record-texts.ts';

/** The address of a contender, and the texts around the records of a body. */
export interface UploadTarget extends UploadAddress {
  /** The text before the first record. Commas separate the records, and `closing` follows the last one. */
  readonly opening: string;
  readonly closing: string;
}

export interface UploadOrder extends RecordsOrder {
  readonly clients: number;
}

export interface Timed {
  readonly count: number;
  readonly elapsedMs: number;
}

export interface UploadJob {
  readonly target: UploadTarget;
  readonly order: UploadOrder;
  /** The bodies are sent repeatedly for this time, with different values each time. If null, each is sent once. */
  readonly durationMs: number | null;
}

function bodiesOf({ opening, closing }: UploadTarget, order: UploadOrder): Buffer[] {
  return recordTexts(order).map((records) =>
    Buffer.concat([Buffer.from(opening), records.subarray(1, -1), Buffer.from(closing)]),
  );
}

const revisedText = Buffer.from('Autumn offer ');

/** Changes one digit in every transaction, so that each transaction differs from its version in the last pass. */
function revise(body: Buffer, pass: number): void {
  const digit = 0x30 + (pass % 10);
  for (let at = body.indexOf(revisedText); at !== -1; at = body.indexOf(revisedText, at + 1)) {
    body[at + revisedText.length] = digit;
  }
}

if (import.meta.main) {
  takeOrder<UploadJob, Timed>(async ({ target, order, durationMs }) => {
    const bodies = bodiesOf(target, order);
    return async () => {
      const startedAtMs = performance.now();
      let taken = 0;
      const isOver = (): boolean =>
        durationMs === null ? taken >= bodies.length : performance.now() - startedAtMs >= durationMs;
      const nextBody = (): Buffer | null => {
        if (isOver()) return null;
        const body = bodies[taken % bodies.length]!;
        if (durationMs !== null) revise(body, Math.floor(taken / bodies.length));
        taken++;
        return body;
      };
      const { clients, recordsPerUpload, workload } = order;
      const mayRefuse = workload === 'mixed';
      const { uploads, elapsedMs } = await sendUploads({ to: target, clients, nextBody, mayRefuse });
      return { count: uploads * recordsPerUpload, elapsedMs };
    };
  });
}
