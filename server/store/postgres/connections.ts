// The connections of one thread to PostgreSQL: handed out in turn, given up when they fail, opened anew when
// they are needed.

import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { StoreUnavailable } from '../store.ts';
import type { Address } from './address.ts';
import { asStoreError, clientConfig, isConflict, isRefusedCopy, setUpSession } from './database.ts';

export interface Statement {
  /** The same text always has the same name: each connection then parses and plans it once. */
  readonly name?: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

/** A row as PostgreSQL writes it; what the text means is for those to say who asked. */
export type TextRow = readonly (string | null)[];

export type Run = (statement: Statement) => Promise<readonly TextRow[]>;

/** A COPY statement, and the rows as its text format has them. */
export interface CopiedRows {
  readonly text: string;
  readonly rows: Uint8Array;
}

/** What can be asked of a connection. */
export interface Session {
  readonly run: Run;
  /** False where one of the rows is there already; then none was copied. */
  copy(copied: CopiedRows): Promise<boolean>;
}

export interface Connections extends Session {
  /** One statement, and its own transaction. */
  readonly run: Run;
  /** `work` may run more than once: it is repeated when another transaction was in its way. */
  transaction<Result>(
    ending: 'COMMIT' | 'ROLLBACK',
    work: (session: Session) => Promise<Result>,
  ): Promise<Result>;
  /** Only once nothing is under way. */
  close(): Promise<void>;
}

/**
 * One connection takes in 30,000 rows a second and more, one thread prepares hardly three times that: a
 * fourth keeps small calls from waiting behind large ones. More would only contend within the server, and a
 * process with its three threads stays at 12 of the 100 connections that a server allows by default.
 */
const MOST_CONNECTIONS = 4;
/** Longer than any burst takes to be worked off, shorter than a client waits. */
const TURN_PATIENCE_MS = 10_000;
const MOST_WAITING = 100_000;
const IDLE_CONNECTION_KEPT_MS = 60_000;
/** A server that was replaced behind its name, or moved, is found again within this time. */
const CONNECTION_LIFETIME_S = 1800;
const MOST_ATTEMPTS = 8;
const FIRST_PAUSE_MS = 5;

const asText = { getTypeParser: () => (text: string) => text } as unknown as pg.CustomTypesConfig;

export function openConnections(address: Address): Connections {
  const pool = new pg.Pool({
    ...clientConfig(address),
    max: MOST_CONNECTIONS,
    idleTimeoutMillis: IDLE_CONNECTION_KEPT_MS,
    maxLifetimeSeconds: CONNECTION_LIFETIME_S,
    allowExitOnIdle: true,
    onConnect: setUpSession,
  });
  // An idle connection that the server ends is dropped by the pool; the next call opens another.
  pool.on('error', () => {});
  const turns = createTurns(MOST_CONNECTIONS);

  const withSession = async <Result>(use: (session: Session) => Promise<Result>): Promise<Result> => {
    await turns.take();
    try {
      const client = await pool.connect().catch((error: unknown) => Promise.reject(asStoreError(error)));
      // While it is lent out the pool does not listen, and an unheard error would end the process. What was
      // being asked is rejected with it anyway.
      const ignore = (): void => {};
      client.on('error', ignore);
      let isSound = true;
      try {
        return await use({
          run: (statement) => ask(client, statement),
          copy: (copied) => copyInto(client, copied),
        });
      } catch (error) {
        isSound = !(error instanceof StoreUnavailable) || isConflict(error);
        throw error;
      } finally {
        client.off('error', ignore);
        client.release(!isSound);
      }
    } finally {
      turns.give();
    }
  };

  return {
    run: (statement) => repeatedly(() => withSession(({ run }) => run(statement))),
    copy: (copied) => repeatedly(() => withSession(({ copy }) => copy(copied))),
    transaction: (ending, work) =>
      repeatedly(() =>
        withSession(async (session) => {
          const { run } = session;
          await run({ text: 'BEGIN', values: [] });
          let result: Awaited<ReturnType<typeof work>>;
          try {
            result = await work(session);
          } catch (error) {
            if (!(error instanceof StoreUnavailable) || isConflict(error)) {
              await run({ text: 'ROLLBACK', values: [] });
            }
            throw error;
          }
          await run({ text: ending, values: [] });
          return result;
        }),
      ),
    close: () => pool.end(),
  };
}

async function ask(client: pg.ClientBase, { name, text, values }: Statement): Promise<readonly TextRow[]> {
  try {
    const config = {
      ...(name === undefined ? {} : { name }),
      text,
      types: asText,
      rowMode: 'array' as const,
    };
    const { rows } = await client.query<(string | null)[]>(config, [...values]);
    return rows;
  } catch (error) {
    throw asStoreError(error);
  }
}

async function copyInto(client: pg.ClientBase, { text, rows }: CopiedRows): Promise<boolean> {
  const copying = client.query(copyFrom(text));
  // It may fail once more after it was given up, when its socket drains or is closed: nobody asks any longer.
  copying.on('error', () => {});
  try {
    copying.end(rows);
    await once(copying, 'finish');
    return true;
  } catch (error) {
    if (isRefusedCopy(error)) return false;
    throw asStoreError(error);
  }
}

/** The pauses are random, so that two that met do not meet again. */
async function repeatedly<Result>(attempt: () => Promise<Result>): Promise<Result> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await attempt();
    } catch (error) {
      if (!isConflict(error) || attempts === MOST_ATTEMPTS) throw error;
      await sleep(Math.random() * FIRST_PAUSE_MS * 2 ** attempts);
    }
  }
}

interface Turns {
  take(): Promise<void>;
  give(): void;
}

/**
 * The pool has one patience for a free connection and for a new one. Here the two are told apart: a server
 * that does not answer is given up soon, one that is merely busy later.
 */
function createTurns(places: number): Turns {
  let free = places;
  const waiting = new Set<() => void>();
  return {
    take() {
      if (free > 0) {
        free--;
        return Promise.resolve();
      }
      if (waiting.size >= MOST_WAITING) {
        return Promise.reject(new StoreUnavailable(`${waiting.size} calls already wait for PostgreSQL`));
      }
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const patience = setTimeout(() => {
        waiting.delete(begin);
        reject(
          new StoreUnavailable(
            `all ${places} connections to PostgreSQL were busy for ${TURN_PATIENCE_MS / 1000} s`,
          ),
        );
      }, TURN_PATIENCE_MS);
      const begin = (): void => {
        clearTimeout(patience);
        resolve();
      };
      waiting.add(begin);
      return promise;
    },
    give() {
      const [next] = waiting;
      if (next === undefined) free++;
      else {
        waiting.delete(next);
        next();
      }
    },
  };
}
