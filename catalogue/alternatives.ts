// Lists words as alternatives. Intl.ListFormat does the same, but its first use takes 25 ms, which every command would wait.

/** Returns the words with commas and "or" between them. */
export function alternatives(words: readonly string[]): string {
  if (words.length < 3) return words.join(' or ');
  return `${words.slice(0, -1).join(', ')}, or ${words.at(-1)}`;
}
