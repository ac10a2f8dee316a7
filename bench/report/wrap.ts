// Breaks text into lines that fit the terminal.

import { stripVTControlCharacters } from 'node:util';

/**
 * Breaks text at white space. Breaks a word anywhere if it is longer than a line. Returns at least one line, without
 * control characters.
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

/** Removes colours and line breaks, because the reason why a contender is left out may quote a program's output. */
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
