// The load of uploads: a process that has all bodies ready as bytes, and sends them from several connections.

import { Agent, request } from 'node:http';
import { takeOrder } from '../child.ts';
import { recordsOf, type WorkloadName } from '../workloads.ts';

/** Where and in which dress a contender takes a batch of records. */
export interface UploadTarget {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** What stands around the records, which are separated by commas. */
  readonly opening: string;
  readonly closing: string;
}

export interface UploadOrder {
  readonly workload: WorkloadName;
  readonly seed: number;
  readonly uploads: number;
  readonly recordsPerUpload: number;
  readonly clients: number;
}

export interface Timed {
  readonly count: number;
  readonly elapsedMs: number;
}

export interface UploadJob {
  readonly target: UploadTarget;
  readonly order: UploadOrder;
  /** Go on from the beginning until then, with other values each time; null: each body once, as it is. */
  readonly durationMs: number | null;
}

/** Some records of the upload were refused: as it should be where some are bad. */
const PARTLY_TAKEN = 207;
/** The first lines of an answer that is no success, as much as helps to see why. */
const SHOWN_ANSWER_CHARACTERS = 500;

function post({ url, headers }: UploadTarget, agent: Agent, body: Buffer, mayRefuse: boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const sending = request(url, {
      method: 'POST',
      agent,
      headers: { ...headers, 'Content-Type': 'application/json', 'Content-Length': body.length },
    });
    sending.on('response', (response) => {
      const status = response.statusCode!;
      const isTaken = status === PARTLY_TAKEN ? mayRefuse : status >= 200 && status < 300;
      if (isTaken) {
        response.resume().on('end', resolve);
        return;
      }
      let text = '';
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      response.on('end', () =>
        reject(new Error(`${url} answered ${status}: ${text.slice(0, SHOWN_ANSWER_CHARACTERS)}`)),
      );
    });
    sending.on('error', reject).end(body);
  });
}

function bodiesOf({ opening, closing }: UploadTarget, order: UploadOrder): Buffer[] {
  const { workload, seed, uploads, recordsPerUpload } = order;
  return Array.from({ length: uploads }, (_, upload) => {
    const records = JSON.stringify(recordsOf(workload, seed, upload, recordsPerUpload));
    return Buffer.from(`${opening}${records.slice(1, -1)}${closing}`);
  });
}

const revisedText = Buffer.from('Autumn offer ');

/** Changes one digit of a text in every transaction, so that none is the same as before. */
function revise(body: Buffer, pass: number): void {
  const digit = 0x30 + (pass % 10);
  for (let at = body.indexOf(revisedText); at !== -1; at = body.indexOf(revisedText, at + 1)) {
    body[at + revisedText.length] = digit;
  }
}

if (import.meta.main) {
  takeOrder<UploadJob, Timed>(async ({ target, order, durationMs }) => {
    const bodies = bodiesOf(target, order);
    const agent = new Agent({ keepAlive: true, maxSockets: order.clients });
    return async () => {
      const startedAtMs = performance.now();
      let sent = 0;
      const isOver = (): boolean =>
        durationMs === null ? sent >= bodies.length : performance.now() - startedAtMs >= durationMs;
      const client = async (): Promise<void> => {
        while (!isOver()) {
          const body = bodies[sent % bodies.length]!;
          if (durationMs !== null) revise(body, Math.floor(sent / bodies.length));
          sent++;
          await post(target, agent, body, order.workload === 'mixed');
        }
      };
      await Promise.all(Array.from({ length: order.clients }, client));
      const elapsedMs = performance.now() - startedAtMs;
      agent.destroy();
      return { count: sent * order.recordsPerUpload, elapsedMs };
    };
  });
}
