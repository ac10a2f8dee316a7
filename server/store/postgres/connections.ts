// Manages one thread's connections to PostgreSQL. connection-slots.ts decides which call gets a connection. A failed
// connection is closed, and a new one is opened when a call needs it.

import { addAbortListener, once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { StoreUnavailable } from '../store.ts';
import type { Address } from './address.ts';
import {
  type Claim,
  type ConnectionSlot,
  ConnectionSlots,
  type SlotLimits,
  slotLimits,
} from './connection-slots.ts';
import { asStoreError, GivenUp, isConflict, isOfStatement, isRefusedCopy, RefusedCopy } from './errors.ts';
import {
  BEGIN_WITH_SETTINGS_SQL,
  CONNECT_TIMEOUT_MS,
  cancelStatement,
  clientConfig,
  setUpSession,
} from './session.ts';

export interface Statement {
  /**
   * A name must always stand for the same text. A connection without a pooler parses and plans a named statement only
   * once.
   */
  readonly name?: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

/** A row as PostgreSQL writes it. The caller converts the texts. */
export type TextRow = readonly (string | null)[];

export type Run = (statement: Statement) => Promise<readonly TextRow[]>;

export interface Session {
  readonly run: Run;
  /** Runs a COPY statement with rows in the text format of COPY. Throws a RefusedCopy if one of the rows exists. */
  copy(text: string, rows: Uint8Array): Promise<void>;
}

/** The operations of the connections, for one kind of call. Each statement runs in its own transaction. */
export interface Sessions extends Session {
  /**
   * Runs `work` in a transaction. `work` may run more than once, because the transaction is repeated after a conflict
   * with another one.
   */
  transaction<Result>(work: (session: Session) => Promise<Result>): Promise<Result>;
}

export interface Connections {
  for(claim: Claim): Sessions;
  /** Must be called only when no call is running. */
  close(): Promise<void>;
}

const IDLE_CONNECTION_KEPT_MS = 60_000;
/**
 * A connection is replaced after this time, so that a server that was moved or replaced under the same name is no
 * longer used.
 */
const CONNECTION_LIFETIME_S = 1800;
/** How long an aborted call may take to end before its connection is destroyed. */
const CANCEL_PATIENCE_MS = 1000;
const MOST_ATTEMPTS = 8;
const FIRST_PAUSE_MS = 5;

const asText = { getTypeParser: () => (text: string) => text } as unknown as pg.CustomTypesConfig;

export function openConnections(address: Address, limits: SlotLimits = slotLimits): Connections {
  const { hosts } = address;
  let host = hosts[0]!;
  const pooled = new WeakSet<pg.ClientBase>();
  const pool = new pg.Pool({
    // A new connection uses the host that is current when the connection is opened.
    Client: class extends pg.Client {
      constructor() {
        super(clientConfig(address, host));
      }
    },
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    max: limits.vitalSlots + limits.slots + limits.spareSlots,
    idleTimeoutMillis: IDLE_CONNECTION_KEPT_MS,
    maxLifetimeSeconds: CONNECTION_LIFETIME_S,
    allowExitOnIdle: true,
    async onConnect(client) {
      const { isPooled } = await setUpSession(client, address);
      if (isPooled) pooled.add(client);
    },
  });
  // Ignores the error if the server closes an idle connection: the pool removes the connection, and the next call opens
  // another.
  pool.on('error', () => {});
  const slots = new ConnectionSlots(limits);

  /** Connects to the host that served last. If that fails, tries each of the other hosts once. */
  const connect = async (): Promise<pg.PoolClient> => {
    for (let tried = 1; ; tried++) {
      const triedHost = host;
      try {
        return await pool.connect();
      } catch (error) {
        if (tried === hosts.length) throw asStoreError(error);
        if (host === triedHost) host = hosts[(hosts.indexOf(triedHost) + 1) % hosts.length]!;
      }
    }
  };

  const withClient = <Result>(
    claim: Claim,
    use: (client: pg.PoolClient) => Promise<Result>,
  ): Promise<Result> =>
    repeatedly(async () => {
      const slot = await slots.take(claim);
      let isUnavailable = false;
      try {
        return await onConnected(await connect(), slot, use);
      } catch (error) {
        isUnavailable = error instanceof StoreUnavailable && !isConflict(error);
        throw error;
      } finally {
        slot.giveBack(isUnavailable);
      }
    });

  const sessionOf = (client: pg.PoolClient): Session => ({
    async run({ name, text, values }) {
      const named = name === undefined || pooled.has(client) ? {} : { name };
      const config = { ...named, text, types: asText, rowMode: 'array' as const };
      try {
        return (await client.query<(string | null)[]>(config, [...values])).rows;
      } catch (error) {
        throw asStoreError(error);
      }
    },
    copy: (text, rows) => copyInto(client, text, rows),
  });

  const inTransaction = async <Result>(
    client: pg.PoolClient,
    work: (session: Session) => Promise<Result>,
  ): Promise<Result> => {
    const session = sessionOf(client);
    const { run } = session;
    await run({ text: pooled.has(client) ? BEGIN_WITH_SETTINGS_SQL : 'BEGIN', values: [] });
    let result: Result;
    try {
      result = await work(session);
    } catch (error) {
      if (isSessionSound(error)) await run({ text: 'ROLLBACK', values: [] });
      throw error;
    }
    await run({ text: 'COMMIT', values: [] });
    return result;
  };

  const sessionsFor = (claim: Claim): Sessions => {
    const alone = <Result>(work: (session: Session) => Promise<Result>): Promise<Result> =>
      withClient(claim, (client) =>
        pooled.has(client) ? inTransaction(client, work) : work(sessionOf(client)),
      );
    return {
      run: (statement) => alone(({ run }) => run(statement)),
      copy: (text, rows) => alone(({ copy }) => copy(text, rows)),
      transaction: (work) => withClient(claim, (client) => inTransaction(client, work)),
    };
  };

  return { for: sessionsFor, close: () => pool.end() };
}

/**
 * Calls `use` with the connection, and aborts the call if its slot is given up. Afterwards returns the connection to
 * the pool, or closes it if it may be unusable.
 */
async function onConnected<Result>(
  client: pg.PoolClient,
  { givenUp }: ConnectionSlot,
  use: (client: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  // Ignores error events, because the running statement rejects with the same error. The pool does not listen for
  // errors while the connection is in use, and an unhandled error would end the process.
  const ignore = (): void => {};
  client.on('error', ignore);
  let destroying: NodeJS.Timeout | undefined;
  const aborting = addAbortListener(givenUp, () => {
    cancelStatement(client);
    destroying = setTimeout(() => destroy(client), CANCEL_PATIENCE_MS);
  });
  let isSound = true;
  try {
    return await use(client);
  } catch (error) {
    isSound = isSessionSound(error);
    throw givenUp.aborted ? new GivenUp({ cause: error }) : error;
  } finally {
    // From here on, giving up the slot must not abort anything: the slot is released only a moment later, and the
    // client might already serve another call.
    aborting[Symbol.dispose]();
    clearTimeout(destroying);
    client.off('error', ignore);
    // Closes the connection of an aborted call, because a cancel request may still be on its way and must not hit the
    // next statement.
    client.release(!isSound || givenUp.aborted);
  }
}

function isSessionSound(error: unknown): boolean {
  return !(error instanceof StoreUnavailable) || isOfStatement(error);
}

function destroy(client: pg.ClientBase): void {
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
}

async function copyInto(client: pg.ClientBase, text: string, rows: Uint8Array): Promise<void> {
  const copying = client.query(copyFrom(text));
  // Ignores later errors, because a stream that was aborted may fail again when its socket drains or closes, and
  // nothing receives that error.
  copying.on('error', () => {});
  try {
    copying.end(rows);
    await once(copying, 'finish');
  } catch (error) {
    throw isRefusedCopy(error) ? new RefusedCopy({ cause: error }) : asStoreError(error);
  }
}

/**
 * Retries after conflicts. The pauses are random, so that two transactions that have conflicted do not conflict again.
 */
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
