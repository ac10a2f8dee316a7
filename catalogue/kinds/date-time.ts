// Moments are kept as UTC text of one fixed width, so that comparing text compares time, and shown with
// no more fraction digits than they need (none, 3 or 6).

import { isRealDate } from './calendar.ts';
import { Flaw, type Kind, quote, wrongType } from './kind.ts';

const LONGEST_FRACTION_DIGITS = 32;
const shape = new RegExp(
  `^(\\d{4})-(\\d\\d)-(\\d\\d)[Tt](\\d\\d):(\\d\\d)(?::(\\d\\d)(?:\\.(\\d{1,${LONGEST_FRACTION_DIGITS}}))?)?` +
    '(?:[Zz]|([+-])(\\d\\d)(?::?(\\d\\d))?)?$',
);
const earliestMs = Date.parse('0001-01-01T00:00:00Z');
const latestMs = Date.parse('9999-12-31T23:59:59.999Z');

/** How programs write date-times: in UTC, with no fraction or milliseconds. Most come so, and are read faster. */
const usual = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z$/;

function parseUsual(text: string): string | null {
  const isReal = isRealDate(Number(text.slice(0, 4)), Number(text.slice(5, 7)), Number(text.slice(8, 10)));
  if (!isReal || text.slice(11, 13) > '23' || text.slice(14, 16) > '59' || text.slice(17, 19) > '59')
    return null;
  return text.length === 20 ? `${text.slice(0, 19)}.000000Z` : `${text.slice(0, 23)}000Z`;
}

/** The moment in its kept form, `YYYY-MM-DDTHH:MM:SS.ffffffZ`, or null where the text names none. */
export function parseDateTime(text: string): string | null {
  if (usual.test(text)) return parseUsual(text);
  const parts = shape.exec(text);
  if (parts === null) return null;
  const [, year, month, day, hour, minute, second = '00', fraction = '', sign, offsetHour, offsetMinute] =
    parts as unknown as string[];
  if (!isRealDate(Number(year), Number(month), Number(day))) return null;
  if (hour! > '23' || minute! > '59' || second > '59') return null;
  const micros = fraction.length >= 6 ? fraction.slice(0, 6) : fraction.padEnd(6, '0');
  const local = `${year}-${month}-${day}T${hour}:${minute}:${second}`;
  if (sign === undefined) return `${local}.${micros}Z`;
  if (offsetHour! > '23' || (offsetMinute ?? '00') > '59') return null;
  const offsetMs = (Number(offsetHour) * 60 + Number(offsetMinute ?? 0)) * 60_000;
  const utcMs = Date.parse(`${local}Z`) - (sign === '+' ? offsetMs : -offsetMs);
  if (utcMs < earliestMs || utcMs > latestMs) return null;
  return `${new Date(utcMs).toISOString().slice(0, 19)}.${micros}Z`;
}

export function dateTimeFromMs(epochMs: number): string {
  const iso = new Date(epochMs).toISOString();
  return `${iso.slice(0, -1)}000Z`;
}

export function presentDateTime(kept: string): string {
  if (kept.endsWith('.000000Z')) return `${kept.slice(0, 19)}Z`;
  return kept.endsWith('000Z') ? `${kept.slice(0, 23)}Z` : kept;
}

export const dateTime: Kind<string> = {
  name: 'date-time',
  accepts: 'an ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999',
  schema: { type: 'string', format: 'date-time' },
  check(value) {
    if (typeof value !== 'string') return wrongType('a date-time string', value);
    return (
      parseDateTime(value) ?? new Flaw('invalid_format', `must be ${dateTime.accepts}, not ${quote(value)}`)
    );
  },
  present: (kept) => presentDateTime(kept as string),
};
