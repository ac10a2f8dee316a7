// Provides a template tag for safe HTML: every value that is put into a template is escaped, unless it is already
// `Html`.

export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export type Piece = Html | string | number | readonly Piece[];

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export const nothing = new Html('');

/** Use it as `html\`<p>${text}</p>\``. Attribute values must be in double quotes. */
export function html(parts: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  return new Html(parts.reduce((whole, part, at) => whole + textOf(pieces[at - 1]!) + part));
}

function textOf(piece: Piece): string {
  if (piece instanceof Html) return piece.text;
  return Array.isArray(piece) ? piece.map(textOf).join('') : escaped(String(piece));
}

export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => escapes[character]!);
}

export function joined(pieces: readonly Html[], between: string): Html {
  return new Html(pieces.map(({ text }) => text).join(escaped(between)));
}
