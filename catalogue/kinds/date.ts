import { datePattern, isRealDate } from './calendar.ts';
import { Flaw, type Kind, quote, wrongType } from './kind.ts';

const pattern = `^${datePattern}$`;
const shape = new RegExp(pattern);

export const date: Kind<string> = {
  name: 'date',
  accepts: 'a calendar date, YYYY-MM-DD',
  schema: { type: 'string', format: 'date', pattern },
  check(value) {
    if (typeof value !== 'string') return wrongType('a date string, YYYY-MM-DD', value);
    if (
      !shape.test(value) ||
      !isRealDate(Number(value.slice(0, 4)), Number(value.slice(5, 7)), Number(value.slice(8, 10)))
    ) {
      return new Flaw('invalid_format', `must be ${date.accepts}, not ${quote(value)}`);
    }
    return value;
  },
  present: (kept) => kept as string,
};
