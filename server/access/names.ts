// Checks the names that an operator gives to organisations and keys.

import { Failure } from '../failure.ts';

const LONGEST_NAME_CHARACTERS = 100;
/**
 * The characters that are refused. With them, names that look equal could be different, and a name could change how the
 * text around it is shown.
 */
const invisible = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

/** Returns the name without surrounding spaces and in Unicode's form NFC, so that names that look equal are equal. */
export function parseName(text: string): string | Failure {
  const name = text.trim().normalize('NFC');
  if (name === '') return new Failure('must not be empty');
  const found = invisible.exec(name)?.[0];
  if (found !== undefined) {
    const codePoint = found.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0');
    return new Failure(`must not contain U+${codePoint}, which is invisible; type the name again`);
  }
  const characters = [...name].length;
  if (characters > LONGEST_NAME_CHARACTERS) {
    return new Failure(`must have at most ${LONGEST_NAME_CHARACTERS} characters, not ${characters}`);
  }
  return name;
}
