// Makes text from other sources, such as file names and messages of servers, safe to print on a terminal.

/** Characters that control a terminal, end a line, or change the direction of the text after them. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Bidi_Control}]/gu;

/**
 * Returns the line with its unprintable characters escaped, as in \u001b. JSON uses the same escapes, so JSON that is
 * printed keeps its meaning.
 */
export function printable(line: string): string {
  return line.replace(
    unprintable,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Does the same for a text of several lines, and keeps its line breaks. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}
