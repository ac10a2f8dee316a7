// The little of SVG that the chart needs: elements, escaped text, and how wide text will be.

export type Attributes = Readonly<Record<string, string | number>>;

/** `content` is markup already. */
export function element(name: string, attributes: Attributes, content = ''): string {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${attribute(value)}"`);
  return content === ''
    ? `<${name}${written.join('')}/>`
    : `<${name}${written.join('')}>${content}</${name}>`;
}

/** Also for attributes. What XML cannot hold at all becomes the replacement character. */
export function escapeText(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu, '\u{FFFD}')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}

function attribute(value: string | number): string {
  if (typeof value === 'string') return escapeText(value);
  return String(tenth(value));
}

/** Finer than that cannot be seen. */
export function tenth(px: number): number {
  if (!Number.isFinite(px)) throw new RangeError(`${px} cannot be drawn`);
  return Math.round(px * 10) / 10;
}

export interface Font {
  readonly sizePx: number;
  readonly isBold?: boolean;
}

const BOLD_FACTOR = 1.14;

/** Rounded up from DejaVu Sans, the widest that the font stack may end at. */
const widthsEm: readonly (readonly [characters: RegExp, widthEm: number])[] = [
  [/[ijl']/, 0.29],
  [/[ .,:;|!/()[\]·-]/, 0.4],
  [/[frt"]/, 0.47],
  [/[acekosvxyz]/, 0.62],
  [/[mMW@%]/, 1],
  [/[wNOQ×&<>=+–]/, 0.86],
  [/[A-Z]/, 0.76],
];
const OTHER_LETTER_EM = 0.65;
const IDEOGRAPH_EM = 1.1;
const FIRST_IDEOGRAPH = 0x2e80;

/** In pixels, rather too much than too little: text must never run into what is beside it. */
export function textWidth(text: string, { sizePx, isBold = false }: Font): number {
  let widthEm = 0;
  for (const character of text) widthEm += characterWidthEm(character);
  return widthEm * sizePx * (isBold ? BOLD_FACTOR : 1);
}

function characterWidthEm(character: string): number {
  if (character.codePointAt(0)! >= FIRST_IDEOGRAPH) return IDEOGRAPH_EM;
  return widthsEm.find(([characters]) => characters.test(character))?.[1] ?? OTHER_LETTER_EM;
}
