// Breaks text into lines that fit the terminal.

import { stripVTControlCharacters } from 'node:util';

/**
 * Breaks text at white space, and words that are too long anywhere. Returns at least one line, without control
 * characters.
 */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of oneLine(text).split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (charactersOf(longer) <= width) {
      line = longer;
      continue;
    }
    if (line !== '') lines.push(line);
    line = '';
    for (const character of word) {
      if (line !== '' && charactersOf(line + character) > width) {
        lines.push(line);
        line = '';
      }
      line += character;
    }
  }
  return [...lines, line];
}

/** Removes colours and line breaks, because a reason may quote the output of a program. */
export function oneLine(text: string): string {
  return stripVTControlCharacters(text)
    .toWellFormed()
    .replaceAll(/\p{Cc}+/gu, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

export function charactersOf(text: string): number {
  return [...text].length;
}
