import { Flaw, type Kind, quote, wrongType } from './kind.ts';

const pattern = '^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$';
const anyCase = new RegExp(pattern);
const LENGTH_CHARACTERS = 36;
const HYPHEN = 0x2d;

/** Maps each character code to 0 if the character is a lower-case hexadecimal digit, otherwise to 1. */
const notDigit = new Uint8Array(0x10000).fill(1);
for (const digit of '0123456789abcdef') notDigit[digit.charCodeAt(0)] = 0;

/**
 * Returns whether the text is a UUID in lower case. A record has several UUIDs, nearly all in lower case, and a regular
 * expression takes twice as long.
 */
function isLowerCase(text: string): boolean {
  return (
    text.length === LENGTH_CHARACTERS &&
    text.charCodeAt(8) === HYPHEN &&
    text.charCodeAt(13) === HYPHEN &&
    text.charCodeAt(18) === HYPHEN &&
    text.charCodeAt(23) === HYPHEN &&
    areDigits(text, 0, 8) &&
    areDigits(text, 9, 13) &&
    areDigits(text, 14, 18) &&
    areDigits(text, 19, 23) &&
    areDigits(text, 24, LENGTH_CHARACTERS)
  );
}

function areDigits(text: string, from: number, to: number): boolean {
  let others = 0;
  for (let at = from; at < to; at++) others |= notDigit[text.charCodeAt(at)]!;
  return others === 0;
}

export const uuid: Kind<string> = {
  name: 'uuid',
  accepts: 'a UUID of the form 8-4-4-4-12 hexadecimal digits',
  schema: { type: 'string', format: 'uuid', pattern },
  check(value) {
    if (typeof value !== 'string') return wrongType('a UUID string', value);
    if (isLowerCase(value)) return value;
    if (anyCase.test(value)) return value.toLowerCase();
    return new Flaw('invalid_format', `must be ${uuid.accepts}, not ${quote(value)}`);
  },
  present: (kept) => kept as string,
};
