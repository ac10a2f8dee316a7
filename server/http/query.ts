// Reads query parameters strictly. A mistyped name or a bad value is refused, because ignoring it would return a result
// that the client did not ask for.

import { Flaw, type Kind, quote } from '@headgate/catalogue/kinds/kind.ts';
import type { FastifyRequest } from 'fastify';
import { nearName, sentence } from '../near-name.ts';
import type { Refusal } from './refusals.ts';

export type Query<Name extends string> = { readonly [N in Name]?: string };

export const DEFAULT_PAGE_RECORDS = 100;
export const LARGEST_PAGE_RECORDS = 1000;

export function readQuery<const Name extends string>(
  request: FastifyRequest,
  names: readonly Name[],
): Query<Name> | Refusal {
  const query = request.query as Record<string, string | string[]>;
  for (const [name, value] of Object.entries(query)) {
    if (!(names as readonly string[]).includes(name)) {
      const near = nearName(name, names);
      const known = names.length === 0 ? 'this path takes none' : `this path takes ${names.join(', ')}`;
      const hint = near === null ? known : `did you mean ${near}?`;
      return badQuery(sentence(`The query parameter ${quote(name)} is not known; ${hint}`));
    }
    if (Array.isArray(value)) return badQuery(`The query parameter ${name} is given more than once.`);
  }
  return query as Query<Name>;
}

export function badQuery(message: string): Refusal {
  return { refusal: 'bad_request', message };
}

export function readFlag(name: string, value: string | undefined): boolean | Refusal {
  if (value === undefined || value === 'false') return false;
  return value === 'true' ? true : badQuery(`${name} must be true or false, not ${quote(value)}.`);
}

export function readLimit(value: string | undefined): number | Refusal {
  if (value === undefined) return DEFAULT_PAGE_RECORDS;
  const limit = /^\d{1,4}$/.test(value) ? Number(value) : 0;
  if (limit >= 1 && limit <= LARGEST_PAGE_RECORDS) return limit;
  return badQuery(`limit must be a whole number from 1 to ${LARGEST_PAGE_RECORDS}, not ${quote(value)}.`);
}

/** Returns a filter value in the form in which the kind stores it. */
export function readFilter(name: string, kind: Kind, value: string): string | Refusal {
  const kept = kind.check(value, false);
  return kept instanceof Flaw ? badQuery(`${name} ${kept.message}.`) : (kept as string);
}

/** Returns an opaque cursor that encodes the values that identify the last record of a page. */
export function writeCursor(values: readonly string[]): string {
  return Buffer.from(values.join(' ')).toString('base64url');
}

export function readCursor(
  cursor: string,
  kinds: readonly Pick<Kind, 'check'>[],
): readonly string[] | Refusal {
  const values = Buffer.from(cursor, 'base64url').toString().split(' ');
  const isOurs = values.length === kinds.length && writeCursor(values) === cursor;
  const kept = isOurs ? values.map((value, at) => kinds[at]!.check(value, true)) : [];
  if (isOurs && kept.every((value) => typeof value === 'string')) return kept as string[];
  return badQuery('cursor was not issued by this service; use next_cursor of the previous page.');
}

/** Returns the value if it is one of the choices, or null if it is not given. */
export function readChoice<const Choice extends string>(
  name: string,
  choices: readonly Choice[],
  value: string | undefined,
): Choice | null | Refusal {
  if (value === undefined) return null;
  if ((choices as readonly string[]).includes(value)) return value as Choice;
  return badQuery(`${name} must be one of ${choices.join(', ')}, not ${quote(value)}.`);
}

/** Checks a whole number in a cursor. */
export const wholeNumber = {
  check: (value: unknown) =>
    /^\d{1,15}$/.test(String(value)) ? String(value) : new Flaw('invalid_format', 'must be a number'),
};

export function readWhole(
  name: string,
  value: string | undefined,
  least: number,
  most: number,
  ifOmitted: number,
): number | Refusal {
  if (value === undefined) return ifOmitted;
  const number = /^\d{1,15}$/.test(value) ? Number(value) : -1;
  if (number >= least && number <= most) return number;
  return badQuery(`${name} must be a whole number from ${least} to ${most}, not ${quote(value)}.`);
}
