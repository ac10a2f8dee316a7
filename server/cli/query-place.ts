// Shows the place of an error in a query: the line, and a caret under the position.

import { printable } from '../printable.ts';
import { cutTo, shownWidth } from './shown-width.ts';

const USUAL_WIDTH_CHARACTERS = 80;

/** Returns two lines. If the line of the query is too long for the width, only a part of it is shown. */
export function placeInQuery(
  sql: string,
  position: number,
  width: number = USUAL_WIDTH_CHARACTERS,
): readonly [string, string] {
  const before = sql.slice(0, position).split('\n');
  const after = sql.slice(position).split('\n', 1)[0]!;
  const label = `line ${before.length}: `;
  const room = Math.max(20, width - label.length);
  const [start, end] = [clean(before.at(-1)!), clean(after)];
  const shownStart = endOf(start, Math.floor(room / 2));
  const indent = ' '.repeat(label.length + shownWidth(shownStart));
  return [label + shownStart + cutTo(end, room - shownWidth(shownStart)), `${indent}^`];
}

/** Replaces tabs, because their width depends on their place. */
function clean(text: string): string {
  return printable(text.replaceAll('\t', ' ').replace(/\r$/, ''));
}

/** Returns the text, or its end with an ellipsis before it if it is wider than `most`. */
function endOf(text: string, most: number): string {
  if (shownWidth(text) <= most) return text;
  const characters = [...text].slice(-most);
  while (characters.length > 0 && shownWidth(characters.join('')) >= most) characters.shift();
  return `…${characters.join('')}`;
}
