// The rule for names that an operator gives and that others read in tables and messages.

const LONGEST_NAME_CHARACTERS = 100;
/** Two names that look equal must be equal, and none may change how what stands beside it is read. */
const invisible = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

export type ParsedName =
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'refused'; readonly reason: string };

/** The name, trimmed and in one spelling of its characters, so that what looks equal is equal. */
export function parseName(text: string): ParsedName {
  const name = text.trim().normalize('NFC');
  if (name === '') return { kind: 'refused', reason: 'must not be empty' };
  const found = invisible.exec(name)?.[0];
  if (found !== undefined) {
    const codePoint = found.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0');
    return {
      kind: 'refused',
      reason: `must not contain U+${codePoint}, which cannot be seen; type the name anew`,
    };
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
