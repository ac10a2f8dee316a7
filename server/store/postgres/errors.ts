// Translates the errors of PostgreSQL to those of a store.

import pg from 'pg';
import { StoreUnavailable, StoreUnusable } from '../store.ts';
import type { Address } from './address.ts';
import { isMovedShard } from './citus.ts';

/**
 * Thrown for a call that was aborted because other calls needed its connection, or because it took longer than the
 * limit of its claim.
 */
export class GivenUp extends StoreUnavailable {
  constructor(options: ErrorOptions) {
    super('PostgreSQL took too long while other calls waited; the call was aborted', options);
  }
}

/** Thrown by a copy if one of its rows exists or may exist. Merging the rows works in either case. */
export class RefusedCopy extends Error {
  constructor(options: ErrorOptions) {
    super('PostgreSQL refused to copy rows', options);
  }
}

/** Thrown by an insertion if one of its rows exists. */
export class RowExists extends Error {}

/** Serialization failure and deadlock. The server has rolled back the transaction. */
const conflictStates: ReadonlySet<string> = new Set(['40001', '40P01']);
/** The states of errors that affect every statement, not only the one that was sent. */
const serverWideStates: ReadonlySet<string> = new Set([
  '25006', // read-only transaction, as on a standby
  '28000', // the role does not exist, or may not connect from here
  '28P01', // wrong password
  '3D000', // no such database
  '53300', // too many connections
  '55000', // the database accepts no connections
  '57P01', // the server, or this connection, is being shut down
  '57P02', // the server has crashed
  '57P03', // the server is starting
]);
/** Further states in which the server cannot serve: completion unknown, permission denied, lock not available. */
const unavailableStates: ReadonlySet<string> = new Set(['40003', '42501', '55P03']);
/**
 * The SQLSTATE classes of connection exceptions, insufficient resources, operator intervention, system errors and
 * internal errors. Citus also reports a worker that is lost during a transaction as an internal error.
 */
const unavailableClasses: ReadonlySet<string> = new Set(['08', '53', '57', '58', 'XX']);
const UNIQUE_VIOLATION = '23505';
/** The states of a unique violation, and of every failure of a copy on a Citus worker. */
const refusedCopyStates: ReadonlySet<string> = new Set([UNIQUE_VIOLATION, 'XX000']);
const STATEMENT_TIMED_OUT = '57014';

function sqlStateOf(error: unknown): string | null {
  return error instanceof pg.DatabaseError && error.code !== undefined ? error.code : null;
}

/**
 * Returns whether the server has rolled the call back because of a conflict or a moved shard. The call may succeed if
 * it is sent again.
 */
export function isConflict(error: unknown): boolean {
  if (!(error instanceof StoreUnavailable)) return false;
  const state = sqlStateOf(error.cause);
  return state !== null && (conflictStates.has(state) || isMovedShard(state, messageOf(error.cause)));
}

/**
 * Returns whether only the statement failed and the session is still usable. On Citus, a statement may fail because a
 * worker is down.
 */
export function isOfStatement(error: StoreUnavailable): boolean {
  const { cause } = error;
  const state = sqlStateOf(cause);
  if (state === null || serverWideStates.has(state)) return false;
  const { severity } = cause as pg.DatabaseError;
  return severity !== 'FATAL' && severity !== 'PANIC';
}

/** Returns whether a statement took longer than its timeout. */
export function isTimedOut(error: unknown): boolean {
  return error instanceof StoreUnavailable && sqlStateOf(error.cause) === STATEMENT_TIMED_OUT;
}

export function isRefusedCopy(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state !== null && refusedCopyStates.has(state);
}

/**
 * Returns the error that callers of the store handle: StoreUnavailable for a problem of the server, the network or the
 * operator's setup. Any other error is a bug, and is reported without the values of the statement.
 */
export function asStoreError(error: unknown): Error {
  const state = sqlStateOf(error);
  if (state === null) return isOurMistake(error) ? error : unavailable(messageOf(error), error);
  const message = `${messageOf(error)} (SQLSTATE ${state})`;
  const isUnavailable =
    [conflictStates, serverWideStates, unavailableStates].some((states) => states.has(state)) ||
    unavailableClasses.has(state.slice(0, 2)) ||
    isMovedShard(state, messageOf(error));
  if (isUnavailable) return unavailable(message, error);
  const refusal = `PostgreSQL refused a statement: ${message}`;
  return state === UNIQUE_VIOLATION ? new RowExists(refusal) : new Error(refusal);
}

/**
 * Returns whether the error is a StoreUnusable or a bug in Headgate. Errors of node-postgres and the network are plain
 * Errors or have a code, so a TypeError or RangeError without a code is a bug.
 */
function isOurMistake(error: unknown): error is Error {
  return (
    error instanceof StoreUnusable ||
    ((error instanceof TypeError || error instanceof RangeError) && !('code' in error))
  );
}

function unavailable(message: string, cause: unknown): StoreUnavailable {
  return new StoreUnavailable(`PostgreSQL is not available: ${message}`, { cause });
}

/**
 * Returns the message of the error. A host with several addresses fails with an AggregateError, which has no message of
 * its own, so the message of its first error is returned.
 */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return messageOf(error.errors[0]);
  return error instanceof Error ? error.message : String(error);
}

export function isWithoutTls(error: unknown): boolean {
  return error instanceof Error && error.message === 'The server does not support SSL connections';
}

/** Returns the error for a database that cannot be opened, with a message for the operator. */
export function asOpeningError({ shown, config, sslMode }: Address, error: unknown): Error {
  if (error instanceof StoreUnusable || error instanceof StoreUnavailable) return error;
  const message = messageOf(error);
  const unusable = (reason: string): StoreUnusable => new StoreUnusable(`${shown} cannot be used: ${reason}`);
  switch (sqlStateOf(error)) {
    case '28P01':
      return unusable(`the password of the role ${config.user} is wrong`);
    case '28000':
      return unusable(message);
    case '3D000':
      return unusable('there is no such database; create it first');
    case '42501':
      return unusable(`the role ${config.user} lacks a right (${message}); grant it CREATE on the schema`);
    case '55P03':
      return new StoreUnavailable(`${shown} is kept locked by another process: ${message}`);
    case null: {
      if (isWithoutTls(error)) return unusable(`the server offers no TLS, which sslmode=${sslMode} asks for`);
      if (/client password must be a(?: non-empty)? string/.test(message)) {
        return unusable('the server asks for a password; give one');
      }
      const { code = '' } = error as NodeJS.ErrnoException;
      if (/CERT|SIGNATURE|ERR_TLS/.test(code)) return unusable(`its certificate is not accepted: ${message}`);
      return isOurMistake(error) ? error : new StoreUnavailable(`${shown} cannot be reached: ${message}`);
    }
    default: {
      const known = asStoreError(error);
      if (!(known instanceof StoreUnavailable)) return known;
      return new StoreUnavailable(`${shown} cannot serve: ${message}`);
    }
  }
}
