// Lays out text in aligned columns. The last column is wrapped, and its continuation lines are indented.

const WIDTH_CHARACTERS = 100;
const GAP = '  ';

export function columns(rows: readonly (readonly string[])[], indent = ''): string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => lengthOf(row[column] ?? ''))),
  );
  return rows.flatMap((row) => {
    const ahead = row
      .slice(0, -1)
      .map((cell, column) => cell + ' '.repeat(widths[column]! - lengthOf(cell)) + GAP);
    const start = indent + ahead.join('');
    const lines = wrap(row.at(-1) ?? '', Math.max(30, WIDTH_CHARACTERS - lengthOf(start)));
    return lines.map((line, index) => ((index === 0 ? start : ' '.repeat(lengthOf(start))) + line).trimEnd());
  });
}

/** Returns the text broken into lines at spaces. A word longer than the width is not broken. */
export function wrap(text: string, width = WIDTH_CHARACTERS): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1)!;
    if (line !== '' && lengthOf(line) + 1 + lengthOf(word) > width) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines;
}

function lengthOf(text: string): number {
  return [...text].length;
}
