// Text that is not ours, such as the names of files and the messages of servers, on its way to a terminal.

/** What makes a terminal act, ends a line, or changes the order in which the rest is read. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Bidi_Control}]/gu;

/**
 * Returns the line with such characters shown as \u001b and the like. Within JSON that means the same character, so
 * what is printed for programs keeps its meaning.
 */
export function printable(line: string): string {
  return line.replace(
    unprintable,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** The same for a text of several lines, which keeps its line breaks. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}
