// The process of the organisation that attacks, with several connections, each as fast as the server allows.
// It uses HTTP on plain sockets to need little CPU, because it shares the processors with the server.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { takeOrder } from '../prepared-child.ts';
import { attackNamed, type Manner, type NextRequest, type Target } from './attacks.ts';

export interface AttackOrder {
  readonly attack: string;
  readonly target: Target;
  readonly connections: number;
  readonly durationMs: number;
}

/** The number of responses of each status, and the number of connections that were opened. */
export interface AttackResult {
  readonly answers: Readonly<Record<number, number>>;
  readonly connections: number;
}

const receiving = Buffer.alloc(256 * 1024);
const endOfHead = Buffer.from('\r\n\r\n');
const endOfChunks = '0\r\n\r\n';
const CONTINUE_STATUS = 100;
const REOPEN_AFTER_MS = 5;
/** After this time the server has read the request but not yet responded. */
const LEAVE_AFTER_MS = 50;
const SEND_UNREAD_EVERY_MS = 50;

class Attacking {
  readonly #port: number;
  readonly #next: NextRequest;
  readonly #durationMs: number;
  readonly #answers: Record<number, number> = {};
  readonly #sockets = new Set<Socket>();
  #opened = 0;
  #isOver = false;

  constructor({ target, durationMs }: AttackOrder, next: NextRequest) {
    this.#port = target.port;
    this.#next = next;
    this.#durationMs = durationMs;
  }

  async run(connections: number, manner: Manner): Promise<AttackResult> {
    setTimeout(() => {
      this.#isOver = true;
      for (const socket of this.#sockets) socket.destroy();
    }, this.#durationMs);
    await Promise.all(
      Array.from({ length: connections }, (_, connection) => this.#attack(connection, manner)),
    );
    return { answers: this.#answers, connections: this.#opened };
  }

  async #attack(connection: number, manner: Manner): Promise<void> {
    while (!this.#isOver) {
      const answers = new AnswerReader((status) => {
        this.#answers[status] = (this.#answers[status] ?? 0) + 1;
      });
      const socket = this.#open(manner === 'never reads' ? null : answers);
      const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
      socket.on('error', () => {});
      try {
        await Promise.race([once(socket, 'connect'), closed]);
        if (!socket.destroyed) await Promise.race([this.#act(manner, socket, connection, answers), closed]);
      } catch {
        // The server has closed the connection, which it may do.
      }
      socket.destroy();
      await closed;
      this.#sockets.delete(socket);
      if (manner !== 'vanishes') await sleep(REOPEN_AFTER_MS);
    }
  }

  /** With a null reader nothing is read from the server. */
  #open(reader: AnswerReader | null): Socket {
    const place = { port: this.#port, host: '127.0.0.1', noDelay: true };
    const socket =
      reader === null
        ? connect(place).pause()
        : connect({
            ...place,
            onread: {
              buffer: receiving,
              callback: (length) => {
                reader.take(receiving.subarray(0, length));
                return true;
              },
            },
          });
    this.#opened++;
    this.#sockets.add(socket);
    return socket;
  }

  async #act(manner: Manner, socket: Socket, connection: number, answers: AnswerReader): Promise<void> {
    switch (manner) {
      case 'reads':
        while (!this.#isOver) {
          const answered = answers.next();
          socket.write(this.#next(connection));
          await answered;
        }
        return;
      case 'never reads':
        // Without reading, only a write shows that the server has closed the connection.
        while (!this.#isOver && !socket.destroyed) {
          if (socket.writableLength === 0) socket.write(this.#next(connection));
          await sleep(SEND_UNREAD_EVERY_MS);
        }
        return;
      case 'leaves':
        await new Promise((resolve) => socket.write(this.#next(connection), resolve));
        await sleep(LEAVE_AFTER_MS);
        return;
      case 'stalls': {
        const answered = answers.next();
        socket.write(this.#next(connection).subarray(0, -1));
        await answered;
        return;
      }
      case 'vanishes': {
        const request = this.#next(connection);
        const bodyStart = request.indexOf(endOfHead) + endOfHead.length;
        const answered = answers.next();
        socket.write(request.subarray(0, bodyStart));
        await answered;
        const middle = (bodyStart + request.length) / 2;
        await new Promise((resolve) => socket.write(request.subarray(bodyStart, middle), resolve));
      }
    }
  }
}

/** Finds the ends of responses, without keeping them. */
class AnswerReader {
  readonly #onStatus: (status: number) => void;
  #head: Buffer = Buffer.alloc(0);
  /**
   * How many bytes of the body are still to be read. Null while the head is being read. Infinity if the body is chunked,
   * because its length is not known in advance.
   */
  #bodyBytesLeft: number | null = null;
  #lastBytes = '';
  #onAnswer: () => void = () => {};

  constructor(onStatus: (status: number) => void) {
    this.#onStatus = onStatus;
  }

  /** Resolves when the next response is complete. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#onAnswer = resolve;
    });
  }

  take(bytes: Buffer): void {
    let body = bytes;
    if (this.#bodyBytesLeft === null) {
      const received = Buffer.concat([this.#head, bytes]);
      const headBytes = received.indexOf(endOfHead);
      if (headBytes === -1) {
        this.#head = received;
        return;
      }
      const head = received.toString('latin1', 0, headBytes + 2);
      const length = /\r\ncontent-length: (\d+)\r\n/i.exec(head);
      const status = Number(head.slice(9, 12));
      this.#onStatus(status);
      this.#head = Buffer.alloc(0);
      this.#bodyBytesLeft =
        status === CONTINUE_STATUS ? 0 : length === null ? Number.POSITIVE_INFINITY : Number(length[1]);
      this.#lastBytes = '';
      body = received.subarray(headBytes + endOfHead.length);
    }
    this.#bodyBytesLeft -= body.length;
    if (this.#bodyBytesLeft === Number.POSITIVE_INFINITY) {
      const end = body.toString('latin1', Math.max(0, body.length - endOfChunks.length));
      this.#lastBytes = (this.#lastBytes + end).slice(-endOfChunks.length);
      if (this.#lastBytes !== endOfChunks) return;
    } else if (this.#bodyBytesLeft > 0) {
      return;
    }
    this.#bodyBytesLeft = null;
    this.#onAnswer();
  }
}

if (import.meta.main) {
  takeOrder<AttackOrder, AttackResult>(async (order) => {
    const { manner, requests } = attackNamed(order.attack);
    const next = await requests(order.target);
    // Some requests are made when they are first needed: make them now.
    for (let connection = 0; connection < order.connections; connection++) next(connection);
    return () => new Attacking(order, next).run(order.connections, manner);
  });
}
