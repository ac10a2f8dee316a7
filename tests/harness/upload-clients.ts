// Clients that upload without pause: each sends its next body as soon as it has the response to the last one.

import { Agent, request } from 'node:http';

export interface UploadAddress {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Sending {
  readonly to: UploadAddress;
  readonly clients: number;
  /** Returns the next body of this client, or null to stop it. Called after the response to the body before. */
  nextBody(client: number): Buffer | null;
  /** Whether some records of an upload may be refused. */
  readonly mayRefuse?: boolean;
}

export interface Sent {
  readonly uploads: number;
  readonly elapsedMs: number;
}

const PARTLY_TAKEN = 207;
/** How much of an unsuccessful response is shown, to see the reason. */
const SHOWN_ANSWER_CHARACTERS = 500;

/** Resolves when every client has stopped; rejects if an upload is refused. */
export async function sendUploads({ to, clients, nextBody, mayRefuse = false }: Sending): Promise<Sent> {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const startedAtMs = performance.now();
  let uploads = 0;
  const send = async (client: number): Promise<void> => {
    for (let body = nextBody(client); body !== null; body = nextBody(client)) {
      await post(to, agent, body, mayRefuse);
      uploads++;
    }
  };
  try {
    await Promise.all(Array.from({ length: clients }, (_, client) => send(client)));
    return { uploads, elapsedMs: performance.now() - startedAtMs };
  } finally {
    agent.destroy();
  }
}

function post(
  { url, headers }: UploadAddress,
  agent: Agent,
  body: Buffer,
  mayRefuse: boolean,
): Promise<void> {
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
