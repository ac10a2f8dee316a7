// The rule for names that an operator gives and that others read in tables and messages.

const LONGEST_NAME_CHARACTERS = 100;
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}]/u;

export type ParsedName =
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'refused'; readonly reason: string };

/** The name, trimmed and in one spelling of its characters, so that what looks equal is equal. */
export function parseName(text: string): ParsedName {
  const name = text.trim().normalize('NFC');
  if (name === '') return { kind: 'refused', reason: 'must not be empty' };
  if (!name.isWellFormed() || unprintable.test(name)) {
    return { kind: 'refused', reason: 'must not contain control characters or line breaks' };
  }
  const characters = [...name].length;
  if (characters > LONGEST_NAME_CHARACTERS) {
    return {
      kind: 'refused',
      reason: `must have at most ${LONGEST_NAME_CHARACTERS} characters, not ${characters}`,
    };
  }
  return { kind: 'name', name };
}
