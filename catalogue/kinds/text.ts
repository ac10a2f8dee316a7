import { Flaw, type Kind, wrongType } from './kind.ts';

export const LONGEST_TEXT_CHARACTERS = 10_000;

/** Excludes NUL and lone surrogates, whether a regex engine matches code points or UTF-16 units. */
const pattern = '^(?:[^\\u0000\\uD800-\\uDFFF]|[\\uD800-\\uDBFF][\\uDC00-\\uDFFF])*$';

export const text: Kind<string> = {
  name: 'text',
  accepts: `text of at most ${LONGEST_TEXT_CHARACTERS} characters, without NUL or lone surrogates`,
  schema: { type: 'string', maxLength: LONGEST_TEXT_CHARACTERS, pattern },
  check(value, required) {
    if (typeof value !== 'string') return wrongType('text', value);
    if (required && value === '') return new Flaw('required', 'is required and must not be empty');
    if (value.length > LONGEST_TEXT_CHARACTERS && hasMoreCharactersThanAllowed(value)) {
      return new Flaw('too_long', `must have at most ${LONGEST_TEXT_CHARACTERS} characters`);
    }
    if (value.includes('\0')) return new Flaw('invalid_format', 'must not contain a NUL character');
    if (!value.isWellFormed()) return new Flaw('invalid_format', 'must not contain a lone surrogate');
    return value;
  },
  present: (kept) => kept as string,
};

/** Counts code points, so that an emoji outside the basic plane counts as one character. */
function hasMoreCharactersThanAllowed(value: string): boolean {
  if (value.length > 2 * LONGEST_TEXT_CHARACTERS) return true;
  let characters = 0;
  for (const _ of value) characters++;
  return characters > LONGEST_TEXT_CHARACTERS;
}
