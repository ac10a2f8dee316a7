// Parses a database setting. The settings, the command line and the stores all use this module.

import { Failure } from '../failure.ts';

export type DatabaseLocation =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly url: string };

export function isPostgres(database: string): boolean {
  return /^postgres(ql)?:\/\//i.test(database);
}

/** Parses `sqlite:PATH`, a bare path or `postgres://…`. Fails for any other text. */
export function readDatabaseLocation(database: string): DatabaseLocation | Failure {
  if (isPostgres(database)) return { kind: 'postgres', url: database };
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(database)?.[1]?.toLowerCase();
  // Rejects `sqlite://`, because some users would expect a host after the slashes and others a path.
  if (scheme === 'sqlite')
    return new Failure('a SQLite file is named by its path, not by a URL: give sqlite:PATH');
  if (scheme !== undefined) {
    return new Failure(`there is no store for ${scheme} databases: give sqlite:PATH or postgres://…`);
  }
  const path = database.replace(/^sqlite:/i, '');
  if (path === '' || path.includes('\0') || path === ':memory:') {
    return new Failure('the database must be a file on disk: give sqlite:PATH');
  }
  return { kind: 'sqlite', path };
}
