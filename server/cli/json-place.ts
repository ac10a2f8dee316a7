// Finds where in the text of a JSON value a property or element is, from a path such as `all[1].customer`.

import { pathTo } from '../analytics/segments/condition-problem.ts';

const token = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g;

/** An object or array that is being read. */
interface Open {
  readonly path: string;
  /** The position of the next element of an array. Null for an object. */
  index: number | null;
  /** The last key of an object, until its value has been read. */
  key: string | null;
}

/**
 * Returns the number of characters before the key of a property, or before an element of a list. If the path does not
 * exist, returns the place of the innermost part that does. The text must be valid JSON.
 */
export function placeInJson(json: string, path: string): number {
  const places = placesOf(json);
  for (let part = path; part !== ''; part = part.replace(/(?:\.|^)[^.[\]]*$|\[\d+\]$/, '')) {
    const place = places.get(part);
    if (place !== undefined) return place;
  }
  return places.get('') ?? 0;
}

function placesOf(json: string): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  const open: Open[] = [];
  for (const { 0: text, index: at } of json.matchAll(token)) {
    const around = open.at(-1);
    if (text === '}' || text === ']') open.pop();
    else if (text === ',') {
      if (around!.index !== null) around!.index++;
      around!.key = null;
    } else if (around?.index === null && around.key === null) {
      around.key = JSON.parse(text) as string;
      places.set(pathTo(around.path, around.key), at);
    } else if (text !== ':') {
      const path = around === undefined ? '' : pathOfNext(around);
      if (around === undefined || around.index !== null) places.set(path, at);
      if (text === '{') open.push({ path, index: null, key: null });
      if (text === '[') open.push({ path, index: 0, key: null });
    }
  }
  return places;
}

function pathOfNext({ path, index, key }: Open): string {
  return index === null ? pathTo(path, key!) : `${path}[${index}]`;
}
