import { Flaw, type Kind, quote, wrongType } from './kind.ts';

const pattern = '^[A-Za-z]{2}$';
const twoLetters = new RegExp(pattern);

export const region: Kind<string> = {
  name: 'region',
  accepts: 'a two-letter country code',
  schema: { type: 'string', pattern },
  check(value) {
    if (typeof value !== 'string') return wrongType(region.accepts, value);
    if (twoLetters.test(value)) return value.toUpperCase();
    return new Flaw('invalid_format', `must be ${region.accepts}, not ${quote(value)}`);
  },
  present: (kept) => kept as string,
};
