// The kind for date-times. A date-time is stored in UTC as text of a fixed width, so that sorting the text sorts by
// time. It is returned with 0, 3 or 6 fraction digits, as few as possible.

import { datePattern, isRealDate } from './date.ts';
import { Flaw, type JsonSchema, type Kind, quote, wrongType } from './kind.ts';

const LONGEST_FRACTION_DIGITS = 32;
const shape = new RegExp(
  `^(\\d{4})-(\\d\\d)-(\\d\\d)[Tt](\\d\\d):(\\d\\d)(?::(\\d\\d)(?:\\.(\\d{1,${LONGEST_FRACTION_DIGITS}}))?)?` +
    '(?:[Zz]|([+-])(\\d\\d)(?::?(\\d\\d))?)?$',
);
/**
 * The accepted forms, as far as a pattern can describe them. The format `date-time` of JSON Schema is not used, because
 * it forbids times without a zone, which are accepted as UTC, and times without seconds.
 */
const pattern =
  `^${datePattern}[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\\.[0-9]{1,${LONGEST_FRACTION_DIGITS}})?)?` +
  '(?:[Zz]|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?$';
/** The schema of returned values, which are always in UTC and match the format `date-time`. */
export const shownDateTimeSchema: JsonSchema = { type: 'string', format: 'date-time' };
const EARLIEST_MS = Date.parse('0001-01-01T00:00:00Z');
export const LATEST_MS = Date.parse('9999-12-31T23:59:59.999Z');

const NOT_DIGITS = -1;

/** Returns the number that is written in decimal digits from `from` up to `to`, or NOT_DIGITS if it is not a number. */
function numberAt(text: string, from: number, to: number): number {
  let value = 0;
  for (let at = from; at < to; at++) {
    const digit = text.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) return NOT_DIGITS;
    value = value * 10 + digit;
  }
  return value;
}

/**
 * Parses the form that programs usually write: in UTC, with milliseconds or without a fraction. This is much faster
 * than a regular expression. Returns null for any other form and for a time that does not exist.
 */
function parseUsual(text: string): string | null {
  const hasMilliseconds = text.length === 24;
  if (!hasMilliseconds && text.length !== 20) return null;
  const isUsual =
    text[4] === '-' &&
    text[7] === '-' &&
    text[10] === 'T' &&
    text[13] === ':' &&
    text[16] === ':' &&
    text[text.length - 1] === 'Z' &&
    isUpTo(23, numberAt(text, 11, 13)) &&
    isUpTo(59, numberAt(text, 14, 16)) &&
    isUpTo(59, numberAt(text, 17, 19)) &&
    isRealDate(numberAt(text, 0, 4), numberAt(text, 5, 7), numberAt(text, 8, 10));
  if (!isUsual) return null;
  if (!hasMilliseconds) return `${text.slice(0, 19)}.000000Z`;
  return text[19] === '.' && numberAt(text, 20, 23) !== NOT_DIGITS ? `${text.slice(0, 23)}000Z` : null;
}

function isUpTo(most: number, value: number): boolean {
  return value !== NOT_DIGITS && value <= most;
}

/** Returns the date-time in its stored form, `YYYY-MM-DDTHH:MM:SS.ffffffZ`, or null if the text is not valid. */
export function parseDateTime(text: string): string | null {
  const usual = parseUsual(text);
  if (usual !== null) return usual;
  const parts = shape.exec(text);
  if (parts === null) return null;
  const [, year, month, day, hour, minute, second = '00', fraction = '', sign, offsetHour, offsetMinute] =
    parts as unknown as string[];
  if (!isRealDate(Number(year), Number(month), Number(day))) return null;
  if (hour! > '23' || minute! > '59' || second > '59') return null;
  const micros = fraction.slice(0, 6).padEnd(6, '0');
  const local = `${year}-${month}-${day}T${hour}:${minute}:${second}`;
  if (sign === undefined) return `${local}.${micros}Z`;
  if (offsetHour! > '23' || (offsetMinute ?? '00') > '59') return null;
  const offsetMs = (Number(offsetHour) * 60 + Number(offsetMinute ?? 0)) * 60_000;
  const utcMs = Date.parse(`${local}Z`) - (sign === '+' ? offsetMs : -offsetMs);
  if (utcMs < EARLIEST_MS || utcMs > LATEST_MS) return null;
  return `${new Date(utcMs).toISOString().slice(0, 19)}.${micros}Z`;
}

const DAY_MS = 86_400_000;
/** Caches the date of each day since 1970 as `YYYY-MM-DDT`, because most values are on the same few days. */
const dates = new Map<number, string>();
const MOST_DATES = 1000;

/** Returns the stored form of a time in whole milliseconds. */
export function dateTimeFromMs(epochMs: number): string {
  const day = Math.floor(epochMs / DAY_MS);
  let date = dates.get(day);
  if (date === undefined) {
    date = new Date(epochMs).toISOString().slice(0, -'HH:MM:SS.mmmZ'.length);
    if (dates.size >= MOST_DATES) dates.clear();
    dates.set(day, date);
  }
  const timeMs = epochMs - day * DAY_MS;
  const hour = Math.floor(timeMs / 3_600_000);
  const minute = Math.floor(timeMs / 60_000) % 60;
  const second = Math.floor(timeMs / 1000) % 60;
  const millisecond = timeMs % 1000;
  return `${date}${two(hour)}:${two(minute)}:${two(second)}.${millisecond < 100 ? '0' : ''}${two(millisecond)}000Z`;
}

function two(value: number): string {
  return value < 10 ? `0${value}` : `${value}`;
}

export const dateTime: Kind<string> = {
  name: 'date-time',
  accepts: 'an ISO 8601 date-time such as 2024-05-01T09:30:00Z, in the years 0001 to 9999',
  schema: { type: 'string', pattern },
  check(value) {
    if (typeof value !== 'string') return wrongType('a date-time string', value);
    return (
      parseDateTime(value) ?? new Flaw('invalid_format', `must be ${dateTime.accepts}, not ${quote(value)}`)
    );
  },
  present(kept) {
    const text = kept as string;
    if (text.endsWith('.000000Z')) return `${text.slice(0, 19)}Z`;
    return text.endsWith('000Z') ? `${text.slice(0, 23)}Z` : text;
  },
};
