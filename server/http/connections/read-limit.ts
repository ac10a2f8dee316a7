// Limits how long the serving thread reads from connections in one turn of the event loop. In each turn, Node reads from
// all connections on which data has arrived. If 1000 connections each have 64 KiB of small chunks, that takes seconds.
// After `TURN_MS`, the other connections are read in later turns, a few in each. Organisations take turns. A new
// connection belongs to nobody, so only little of it is parsed before its first request shows whose it is. Until then,
// addresses take turns.

import type { Server } from 'node:http';
import { Server as TlsServer } from 'node:tls';
import { FairQueue } from '../../fair-queue.ts';
import { AddressLines } from './address-lines.ts';
import { continueSteps, limitSteps, parseInSteps, type SteppedSocket } from './first-bytes.ts';
import type { Owner } from './owner.ts';

const TURN_MS = 10;
/**
 * Node accepts one connection in each turn. Waiting connections are not read before all new ones are accepted, or this
 * many. Otherwise a new connection would wait until all that were opened before it are read.
 */
const MOST_OPENED_IN_A_ROW = 50;
/**
 * If a connection was accepted in each of this many turns, more are probably waiting. Then every connection that is read
 * waits for its next turn, so that turns are short. All clients share one backlog, so one that opens connections faster
 * than they are accepted would make others wait for seconds.
 */
const MOST_ACCEPTING_TURNS = 8;
/**
 * While connections are accepted, one connection of an organisation is read for each time of this length. If one was
 * read in every few turns instead, they would wait long whenever other work makes each turn long.
 */
const READ_KNOWN_EVERY_MS = 4;
/** Before that time begins, a pause of this many times as long as the last read took leaves time to accept others. */
const PAUSE_FACTOR = 3;
/** After a turn that took longer, only one new connection is read: what has arrived on it may take 50 ms to decrypt. */
const LONG_TURN_MS = 2 * TURN_MS;
/** How many connections of organisations are read after such a turn, and the most that are read after one turn. */
const MOST_KNOWN = 6;
/**
 * Most connections that wait are idle, which shows only when they are resumed. Therefore more are resumed than are read: if
 * fewer had data than could be read, twice as many are resumed for the next turn, up to this number, and otherwise half as
 * many. So thousands of idle connections do not delay the others.
 */
const MOST_RESUMED = 512;
/** What it costs an organisation that a connection is resumed, if to read from one costs 1. */
const RESUMING_COST = 0.02;

/** Only a connection that was forgotten waits this long. Its timeout is no longer postponed, so that it ends. */
const LONGEST_WAIT_MS = 60_000;

/** A connection that is read but not parsed as a whole takes up to 64 KiB of memory. */
const MOST_WITH_REST = 1000;

/** The owner of connections whose data is not HTTP. */
const NOT_HTTP = 'not HTTP';

/**
 * HTTP allows empty lines before a request. Node's parser skips them and reports nothing, so they would be read without a
 * limit. A connection that has sent this many bytes without a request or a piece of a body is closed. A head can have 16
 * KiB, and Node reads 64 KiB at a time.
 */
const MOST_BYTES_OF_NOTHING = 128 * 1024;
const LOOK_FOR_NOTHING_EVERY_MS = 50;

/**
 * A client may change the keys of TLS 1.3 at any time, which takes the server about 20 µs and is not seen as data. A
 * connection that does so this often between two pieces of data is closed.
 */
const MOST_KEY_UPDATES = 32;

const owner = Symbol('owner');
const waitsSinceMs = Symbol('when the connection last began to wait');
const keyUpdates = Symbol('key updates since data last arrived');
const bytesAtData = Symbol('bytes read when data last arrived');

/** A connection in the line of an organisation. The line stays the same if another one sends the next request. */
interface WaitingConnection {
  readonly line: Owner;
  readonly socket: HttpSocket;
}

interface HttpSocket extends SteppedSocket {
  /** The owner of the last request, or of the last one with an organisation. Undefined before the first request. */
  [owner]?: Owner;
  [waitsSinceMs]?: number;
  [bytesAtData]?: number;
  [keyUpdates]?: number;
}

export class ReadLimit {
  readonly #longestWaitMs: number;
  readonly #notWaiting = new Set<HttpSocket>();
  readonly #waiting = new FairQueue<WaitingConnection, Owner>();
  /** The connections that wait and have had no request. */
  readonly #newWaiting = new AddressLines<HttpSocket>();
  #newest: HttpSocket | null = null;
  /** The connections of which a part is read but not parsed. */
  readonly #withRest = new Set<HttpSocket>();
  /**
   * The connections that were resumed for this turn and are not read yet, with the lines in which they waited, or null for
   * new ones. They must not wait again before that.
   */
  readonly #unread = new Map<HttpSocket, Owner | null>();
  /** How many connections of organisations may still be read in this turn. */
  #places = 0;
  /** The most that were resumed for it. */
  #mostResumed = 0;
  #isTurnEndDue = false;
  #turnStartedAtMs = 0;
  #isTimeOver = false;
  /** Whether a connection was accepted in this turn. */
  #hasAccepted = false;
  /** In how many turns in a row that was so. */
  #acceptingTurns = 0;
  /** Whether a connection was accepted in this turn, or a TLS handshake went on. */
  #hasOpened = false;
  #openedInARow = 0;
  /** When a connection of an organisation was last read, and how long that took. */
  #readKnownAtMs = 0;
  #readKnownMs = 0;
  #looking: NodeJS.Timeout | undefined;

  constructor(server: Server, longestWaitMs = LONGEST_WAIT_MS) {
    this.#longestWaitMs = longestWaitMs;
    server.on('connection', () => {
      this.#hasAccepted = true;
      this.opening();
    });
    const opened = server instanceof TlsServer ? 'secureConnection' : 'connection';
    server.prependListener(opened, parseInSteps);
    server.on(opened, (socket: HttpSocket) => {
      this.#notWaiting.add(socket);
      socket.once('close', () => {
        this.#notWaiting.delete(socket);
        this.#newWaiting.delete(socket);
        this.#withRest.delete(socket);
        if (this.#newest === socket) this.#newest = null;
      });
      limitSteps(
        socket,
        () => socket[owner] !== undefined || this.#withRest.size >= MOST_WITH_REST,
        () => this.#keepRest(socket),
        () => {
          this.#noteRead(socket);
          this.#limitTurn(socket);
          endIfNothing(socket);
        },
      );
      if (server instanceof TlsServer) socket.on('keylog', () => this.#keyUpdated(socket));
      this.#postponeTimeout(socket);
      this.#stop(socket);
      if (!this.#isTurnEndDue) this.#beginTurn();
      this.#looking ??= setInterval(() => this.#lookForNothing(), LOOK_FOR_NOTHING_EVERY_MS).unref();
    });
  }

  /**
   * Call this for every turn in which a TLS handshake went on. Otherwise connections that have had a request would be read
   * more often than handshakes, so that new connections wait for them.
   */
  opening(): void {
    this.#hasOpened = true;
    this.#openedInARow++;
  }

  /**
   * Call this after a response. The connection then waits in the line of the request's owner. A later request without an
   * organisation, such as a health check, does not change the line of an organisation.
   */
  responded(socket: HttpSocket, ofRequest: Owner): void {
    if (typeof ofRequest === 'number' || typeof socket[owner] !== 'number') socket[owner] = ofRequest;
  }

  /** Call this for every request whose head has arrived. */
  requestArrived(from: HttpSocket, ownerOf: () => Owner): void {
    from[owner] ??= ownerOf();
    // The request was read together with the TLS handshake. From now on, the connection waits for its organisation.
    if (this.#newWaiting.delete(from)) this.#wait(from);
    this.dataArrived(from);
  }

  /** Call this for every piece of a body, and for data that is not HTTP. */
  dataArrived(from: HttpSocket): void {
    from[owner] ??= NOT_HTTP;
    from[bytesAtData] = from.bytesRead;
    from[keyUpdates] = 0;
    this.#noteRead(from);
    this.#limitTurn(from);
  }

  /**
   * Charges the organisation for what was read from a connection that has waited. Idle connections are hardly charged, and
   * new ones are not. Otherwise an organisation with many of them would wait for all others.
   */
  #noteRead(from: HttpSocket): void {
    const line = this.#unread.get(from) ?? null;
    this.#unread.delete(from);
    if (line === null) return;
    this.#waiting.charge(line, 1);
    this.#readKnownAtMs = performance.now();
    this.#places--;
    if (this.#places === 0) this.#putUnreadBack();
  }

  /** Puts the connections that were resumed for this turn, but can no longer be read in it, back where they waited. */
  #putUnreadBack(): void {
    for (const [socket, line] of [...this.#unread].reverse()) {
      if (line === null) continue;
      this.#unread.delete(socket);
      if (!socket._handle?.reading) continue;
      socket._handle.readStop();
      preventReading(socket);
      this.#notWaiting.delete(socket);
      this.#waiting.unshift(line, { line, socket });
    }
  }

  /** Stops reading from the connection if it must wait for its next turn, and from all if the time of this one is over. */
  #limitTurn(from: HttpSocket): void {
    if (!this.#isTurnEndDue) this.#beginTurn();
    const nowMs = performance.now();
    if (this.#readKnownAtMs >= this.#turnStartedAtMs) this.#readKnownMs = nowMs - this.#readKnownAtMs;
    if (!this.#isTimeOver && nowMs - this.#turnStartedAtMs > TURN_MS) {
      this.#isTimeOver = true;
      for (const socket of this.#notWaiting) if (!this.#unread.has(socket)) this.#stop(socket);
    }
    const mustWait = this.#isTimeOver || this.#acceptingTurns > MOST_ACCEPTING_TURNS;
    if (mustWait && this.#notWaiting.has(from)) this.#stop(from);
  }

  /**
   * Node reports the new key while it decrypts, so the connection must not be destroyed here. Once it is no longer read,
   * Node decrypts at most 64 KiB more.
   */
  #keyUpdated(socket: HttpSocket): void {
    this.#limitTurn(socket);
    socket[keyUpdates] = (socket[keyUpdates] ?? 0) + 1;
    if (socket[keyUpdates] !== MOST_KEY_UPDATES) return;
    socket._handle?.readStop();
    setImmediate(() => socket.destroy());
  }

  /** Stops looking when no connection is left, so that an idle server does nothing. */
  #lookForNothing(): void {
    for (const socket of this.#notWaiting) endIfNothing(socket);
    if (this.#notWaiting.size + this.#waiting.size + this.#newWaiting.size > 0) return;
    clearInterval(this.#looking);
    this.#looking = undefined;
  }

  #beginTurn(): void {
    this.#isTurnEndDue = true;
    this.#isTimeOver = false;
    this.#turnStartedAtMs = performance.now();
    setImmediate(() => this.#endTurn());
  }

  #endTurn(): void {
    this.#isTurnEndDue = false;
    this.#unread.clear();
    this.#acceptingTurns = this.#hasAccepted ? this.#acceptingTurns + 1 : 0;
    this.#hasAccepted = false;
    const isOpening = this.#hasOpened && this.#openedInARow < MOST_OPENED_IN_A_ROW;
    this.#hasOpened = false;
    if (!isOpening) this.#openedInARow = 0;
    const nowMs = performance.now();
    const wasLong = nowMs - this.#turnStartedAtMs > LONG_TURN_MS;
    if (isOpening) this.#resumeWhileOpening(nowMs);
    else if (this.#acceptingTurns > MOST_ACCEPTING_TURNS) this.#resumeNewWhileAccepting(nowMs);
    else if (wasLong) this.#resumeAfterLongTurn();
    else this.#resumeFour();
    if (this.#waiting.size + this.#newWaiting.size + this.#unread.size > 0) this.#beginTurn();
  }

  /**
   * Restarts the connection's timeout if it ends while the connection waits to be read. Otherwise a client whose data
   * has arrived would be considered stalled.
   */
  #postponeTimeout(socket: HttpSocket): void {
    const [endStalled] = socket.listeners('timeout') as [() => void];
    socket.removeListener('timeout', endStalled).on('timeout', () => {
      const isWaiting = !this.#notWaiting.has(socket) || this.#unread.has(socket);
      const waitedMs = performance.now() - (socket[waitsSinceMs] ?? 0);
      if (isWaiting && waitedMs < this.#longestWaitMs) socket.setTimeout(socket.timeout ?? 0);
      else endStalled.call(socket);
    });
  }

  #stop(socket: HttpSocket): void {
    if (!socket._handle?.reading) return;
    socket._handle.readStop();
    this.#wait(socket);
  }

  #keepRest(socket: HttpSocket): void {
    this.#withRest.add(socket);
    this.#unread.delete(socket);
    // A connection that waits was read before it began to wait, together with its TLS handshake.
    if (this.#notWaiting.has(socket) || this.#newWaiting.delete(socket)) this.#wait(socket);
    if (!this.#isTurnEndDue) this.#beginTurn();
    endIfNothing(socket);
  }

  #wait(socket: HttpSocket): void {
    this.#notWaiting.delete(socket);
    if (this.#newest === socket) this.#newest = null;
    socket[waitsSinceMs] = performance.now();
    preventReading(socket);
    const { [owner]: known } = socket;
    if (known !== undefined) {
      this.#waiting.push(known, { line: known, socket });
    } else {
      this.#newWaiting.add(socket);
      this.#newest = socket;
    }
  }

  /**
   * Lets few connections be read, because the cost of reading from one is known only afterwards. The newest of the new ones
   * usually waits for nobody. The oldest get most places, so that none waits long.
   */
  #resumeFour(): void {
    let places = 1;
    for (const newest of [this.#newest, null, null]) if (!this.#resumeNew(newest)) places++;
    if (!this.#resumeKnown(places)) this.#resumeNew(null);
  }

  #resumeWhileOpening(nowMs: number): void {
    const sinceReadMs = nowMs - this.#readKnownAtMs - PAUSE_FACTOR * this.#readKnownMs;
    this.#resumeKnown(Math.min(MOST_KNOWN, Math.floor(sinceReadMs / READ_KNOWN_EVERY_MS)));
  }

  /**
   * Resumes new connections, of which only little is parsed. To read four that have had a request could take longer than to
   * accept fifty.
   */
  #resumeNewWhileAccepting(nowMs: number): void {
    this.#resumeWhileOpening(nowMs);
    for (const newest of [this.#newest, null, null, null]) this.#resumeNew(newest);
  }

  #resumeAfterLongTurn(): void {
    this.#resumeKnown(MOST_KNOWN);
    this.#resumeNew(null);
  }

  /**
   * Resumes the next connections of organisations, of which at most `places` are read in the next turn. Returns whether
   * there was one.
   */
  #resumeKnown(places: number): boolean {
    if (places <= 0) return false;
    const isEnough = this.#places === 0;
    this.#mostResumed = Math.max(places, Math.min(this.#mostResumed * (isEnough ? 0.5 : 2), MOST_RESUMED));
    this.#places = places;
    let resumed = 0;
    for (let rests = 0; resumed < this.#mostResumed && rests < places; resumed++) {
      let next = this.#waiting.shift();
      while (next?.socket.destroyed) next = this.#waiting.shift();
      if (next === undefined) break;
      // The rest is parsed in any case, and before anything else is read.
      if (this.#withRest.has(next.socket)) rests++;
      this.#waiting.charge(next.line, RESUMING_COST);
      this.#resume(next.socket, next.line);
    }
    return resumed > 0;
  }

  /** Resumes a new connection: the given one, or the oldest of the address whose turn it is. Returns whether there was one. */
  #resumeNew(newest: HttpSocket | null): boolean {
    const socket = newest ?? this.#newWaiting.next(1)[0];
    if (socket === undefined) return false;
    this.#newWaiting.delete(socket);
    if (this.#newest === socket) this.#newest = null;
    this.#resume(socket, null);
    return true;
  }

  #resume(socket: HttpSocket, line: Owner | null): void {
    this.#unread.set(socket, line);
    this.#notWaiting.add(socket);
    if (socket._handle) Reflect.deleteProperty(socket._handle, 'readStart');
    if (this.#withRest.delete(socket)) continueSteps(socket);
    else if (socket._handle?.reading) socket._handle.readStart();
  }
}

function doNothing(): void {}

/** Otherwise Node would read when a body that was paused is resumed. */
function preventReading({ _handle: handle }: HttpSocket): void {
  if (handle) handle.readStart = doNothing;
}

function endIfNothing(socket: HttpSocket): void {
  if (socket.bytesRead - (socket[bytesAtData] ?? 0) > MOST_BYTES_OF_NOTHING) socket.destroy();
}
