import { Flaw, type Kind, quote, wrongType } from './kind.ts';

const daysInMonth = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** The pattern of a date for JSON Schema. Every regex engine supports its syntax. It allows 31 days in any month. */
export const datePattern =
  '(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])';
const pattern = `^${datePattern}$`;
const shape = new RegExp(pattern);

/** Returns whether the date exists in the years 0001 to 9999, which ISO 8601 and every SQL database support. */
export function isRealDate(year: number, month: number, day: number): boolean {
  if (year < 1 || month < 1 || month > 12 || day < 1) return false;
  if (day <= 28) return true;
  return day <= daysInMonth[month - 1]! || (month === 2 && day === 29 && isLeapYear(year));
}

function isLeapYear(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

export const date: Kind<string> = {
  name: 'date',
  accepts: 'a calendar date, YYYY-MM-DD',
  schema: { type: 'string', format: 'date', pattern },
  check(value) {
    if (typeof value !== 'string') return wrongType('a date string, YYYY-MM-DD', value);
    const [year, month, day] = value.split('-', 3).map(Number);
    if (shape.test(value) && isRealDate(year!, month!, day!)) return value;
    return new Flaw('invalid_format', `must be ${date.accepts}, not ${quote(value)}`);
  },
  present: (kept) => kept as string,
};
