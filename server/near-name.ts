// Finds the known name that a mistyped name was probably meant to be, for "did you mean" messages.

/** Returns the known name nearest to the given one, or null if none is near enough. */
export function nearName<Name extends string>(given: string, known: Iterable<Name>): Name | null {
  let nearest: Name | null = null;
  let fewestEdits = mostEditsFor(given) + 1;
  for (const name of known) {
    if (Math.abs(name.length - given.length) >= fewestEdits) continue;
    const edits = editsBetween(given.toLowerCase(), name.toLowerCase());
    if (edits < fewestEdits) {
      nearest = name;
      fewestEdits = edits;
    }
  }
  return nearest;
}

/**
 * Returns how many letters of a name may be wrong: a third of them, but at least one. A name of more than forty letters
 * may differ only in upper and lower case.
 */
function mostEditsFor(given: string): number {
  return given.length > 40 ? 0 : Math.max(1, Math.floor(given.length / 3));
}

/** Ends a message with a full stop, unless it already ends with the question of a hint. */
export function sentence(message: string): string {
  return message.endsWith('?') ? message : `${message}.`;
}

/** Returns how many letters of `a` must be added, removed, replaced or swapped with their neighbour to get `b`. */
function editsBetween(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replaced = last[column - 1]! + (a[row - 1] === b[column - 1] ? 0 : 1);
      let edits = Math.min(replaced, last[column]! + 1, current[column - 1]! + 1);
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        edits = Math.min(edits, beforeLast[column - 2]! + 1);
      }
      current.push(edits);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length]!;
}
