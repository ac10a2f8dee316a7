// The connections of one thread to PostgreSQL: handed out as places.ts decides, given up when they fail, opened anew
// when they are needed.

import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { StoreUnavailable } from '../store.ts';
import type { Address } from './address.ts';
import {
  asStoreError,
  BEGIN_POOLED_SQL,
  CONNECT_TIMEOUT_MS,
  cancelStatement,
  clientConfig,
  GivenUp,
  isConflict,
  isOfStatement,
  isRefusedCopy,
  notWritable,
  setUpSession,
} from './database.ts';
import { type Claim, mostConnections, type Place, type PlaceLimits, Places, placeLimits } from './places.ts';

export interface Statement {
  /** The same text always has the same name: each connection then parses and plans it once, if it keeps anything. */
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

/** The connections as one kind of call uses them. */
export interface Sessions extends Session {
  /** One statement, and its own transaction. */
  readonly run: Run;
  /** `work` may run more than once: it is repeated when another transaction was in its way. */
  transaction<Result>(
    ending: 'COMMIT' | 'ROLLBACK',
    work: (session: Session) => Promise<Result>,
  ): Promise<Result>;
}

export interface Connections {
  for(claim: Claim): Sessions;
  /** Only once nothing is under way. */
  close(): Promise<void>;
}

const IDLE_CONNECTION_KEPT_MS = 60_000;
/** A server that was replaced behind its name, or moved, is found again within this time. */
const CONNECTION_LIFETIME_S = 1800;
/** How long a call that was given up has to end by itself, before its connection is destroyed. */
const CANCEL_PATIENCE_MS = 1000;
const MOST_ATTEMPTS = 8;
const FIRST_PAUSE_MS = 5;

const asText = { getTypeParser: () => (text: string) => text } as unknown as pg.CustomTypesConfig;

export function openConnections(address: Address, limits: PlaceLimits = placeLimits): Connections {
  const { hosts, needsWritable } = address;
  let host = hosts[0]!;
  const pooled = new WeakSet<pg.ClientBase>();
  const pool = new pg.Pool({
    // Made for the host that is the current one when a connection is opened.
    Client: class extends pg.Client {
      constructor() {
        super(clientConfig(address, host));
      }
    },
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    max: mostConnections(limits),
    idleTimeoutMillis: IDLE_CONNECTION_KEPT_MS,
    maxLifetimeSeconds: CONNECTION_LIFETIME_S,
    allowExitOnIdle: true,
    async onConnect(client) {
      const { isPooled, isWritable } = await setUpSession(client);
      if (isPooled) pooled.add(client);
      if (needsWritable && !isWritable) throw notWritable(client);
    },
  });
  // An idle connection that the server ends is dropped by the pool; the next call opens another.
  pool.on('error', () => {});
  const places = new Places(limits);

  /** The host that served last is tried first, then each of the others once. */
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

  const withClient = async <Result>(
    claim: Claim,
    use: (client: pg.PoolClient) => Promise<Result>,
  ): Promise<Result> => {
    const place = await places.take(claim);
    let isUnavailable = false;
    try {
      return await onConnected(await connect(), place, use);
    } catch (error) {
      isUnavailable = error instanceof StoreUnavailable && !isConflict(error);
      throw error;
    } finally {
      place.giveBack(isUnavailable);
    }
  };

  const sessionOf = (client: pg.PoolClient): Session => ({
    run: (statement) => ask(client, statement, pooled.has(client)),
    copy: (copied) => copyInto(client, copied),
  });

  const inTransaction = async <Result>(
    client: pg.PoolClient,
    ending: 'COMMIT' | 'ROLLBACK',
    work: (session: Session) => Promise<Result>,
  ): Promise<Result> => {
    const session = sessionOf(client);
    const { run } = session;
    await run({ text: pooled.has(client) ? BEGIN_POOLED_SQL : 'BEGIN', values: [] });
    let result: Result;
    try {
      result = await work(session);
    } catch (error) {
      if (isSessionSound(error)) await run({ text: 'ROLLBACK', values: [] });
      throw error;
    }
    await run({ text: ending, values: [] });
    return result;
  };

  const sessionsFor = (claim: Claim): Sessions => {
    const alone = <Result>(work: (session: Session) => Promise<Result>): Promise<Result> =>
      repeatedly(() =>
        withClient(claim, (client) =>
          pooled.has(client) ? inTransaction(client, 'COMMIT', work) : work(sessionOf(client)),
        ),
      );
    return {
      run: (statement) => alone(({ run }) => run(statement)),
      copy: (copied) => alone(({ copy }) => copy(copied)),
      transaction: (ending, work) =>
        repeatedly(() => withClient(claim, (client) => inTransaction(client, ending, work))),
    };
  };

  return { for: sessionsFor, close: () => pool.end() };
}

/** Ends the call if its place is given up, and hands the connection back for others unless it may be spoilt. */
async function onConnected<Result>(
  client: pg.PoolClient,
  place: Place,
  use: (client: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  // While it is lent out the pool does not listen, and an unheard error would end the process. What was
  // being asked is rejected with it anyway.
  const ignore = (): void => {};
  client.on('error', ignore);
  let destroying: NodeJS.Timeout | undefined;
  place.onGivenUp(() => {
    cancelStatement(client);
    destroying = setTimeout(() => destroy(client), CANCEL_PATIENCE_MS);
  });
  let isSound = true;
  try {
    return await use(client);
  } catch (error) {
    isSound = isSessionSound(error);
    throw place.isGivenUp ? new GivenUp({ cause: error }) : error;
  } finally {
    // The place is given back a moment later. Until then it could be given up, when the client may be another call's.
    place.onGivenUp(() => {});
    clearTimeout(destroying);
    client.off('error', ignore);
    // A request to cancel may still be under way, and must not meet the next statement.
    client.release(!isSound || place.isGivenUp);
  }
}

function isSessionSound(error: unknown): boolean {
  return !(error instanceof StoreUnavailable) || isOfStatement(error);
}

function destroy(client: pg.ClientBase): void {
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
}

async function ask(
  client: pg.ClientBase,
  { name, text, values }: Statement,
  isPooled: boolean,
): Promise<readonly TextRow[]> {
  try {
    const config = {
      ...(name === undefined || isPooled ? {} : { name }),
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
