// The sheet that the chart is drawn on, from the top downwards, with its fonts, colours and strokes.

import { oneLine, wrap } from '../wrap.ts';
import { type Attributes, element, escapeText, type Font, textWidth } from './svg.ts';

const WIDTH = 960;
const MARGIN = 40;
export const LEFT = MARGIN;
export const RIGHT = WIDTH - MARGIN;

/** Blue against grey, vermilion for a miss: they differ in lightness too, for colour-blind readers and in print. */
export const colours = {
  background: '#fdfdfc',
  border: '#d5d8dc',
  text: '#1c2126',
  quiet: '#59626d',
  rule: '#e2e5e8',
  grid: '#e8eaed',
  headgate: '#0b63a5',
  other: '#b5bcc5',
  missed: '#c44e08',
} as const;
export type Colour = keyof typeof colours;

const fonts = {
  title: { sizePx: 24, isBold: true },
  heading: { sizePx: 16, isBold: true },
  label: { sizePx: 13, isBold: false },
  strong: { sizePx: 13, isBold: true },
  note: { sizePx: 12, isBold: false },
  small: { sizePx: 11, isBold: false },
} as const satisfies Readonly<Record<string, Font>>;
export type FontName = keyof typeof fonts;

const family =
  'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif';
const LINE_HEIGHT_EM = 1.35;
/** From the top of a line to its baseline. */
const ASCENT_EM = 1.02;
const WHISKER_CAP = 4;
/** A shorter one would be a blot on the end of its bar. */
const LEAST_WHISKER = 3;
const RUN_GAP = 7;

/** A part of a line of text, in its own font and colour. */
export interface Run {
  readonly text: string;
  readonly font: FontName;
  readonly colour: Colour;
}

export class Page {
  /** The top of what comes next. */
  y = MARGIN - 4;
  readonly #markup: string[] = [];

  skip(px: number): void {
    this.y += px;
  }

  draw(name: string, attributes: Attributes): void {
    this.#markup.push(element(name, attributes));
  }

  /** One line, its parts after one another with a gap between them, wherever the font makes them end. */
  text(runs: readonly Run[], x: number, baseline: number, anchor: 'start' | 'middle' = 'start'): void {
    const parts = runs.map(({ text, font, colour }, index) =>
      element(
        'tspan',
        { class: font, fill: colours[colour], ...(index === 0 ? {} : { dx: RUN_GAP }) },
        escapeText(oneLine(text)),
      ),
    );
    const anchored = anchor === 'start' ? {} : { 'text-anchor': anchor };
    this.#markup.push(element('text', { x, y: baseline, ...anchored }, parts.join('')));
  }

  /** From here on, over the whole width, in as many lines as it takes. */
  paragraph(text: string, font: FontName, colour: Colour): void {
    for (const line of wrapped(text, RIGHT - LEFT, font, colour)) {
      this.text(line, LEFT, this.y + ascent(font));
      this.y += heightOf([line]);
    }
  }

  /** Lines whose common middle is at `middle`. */
  centred(lines: readonly (readonly Run[])[], x: number, middle: number): void {
    let top = middle - heightOf(lines) / 2;
    for (const line of lines) {
      this.text(line, x, top + Math.max(...line.map(({ font }) => ascent(font))));
      top += heightOf([line]);
    }
  }

  /** The lowest and the highest round. Light around dark, to be seen on a bar of any colour and beside it. */
  whisker(fromX: number, toX: number, y: number): void {
    if (toX - fromX < LEAST_WHISKER) return;
    const strokes = [fromX, toX].map((x) => ({ x1: x, x2: x, y1: y - WHISKER_CAP, y2: y + WHISKER_CAP }));
    strokes.push({ x1: fromX, x2: toX, y1: y, y2: y });
    for (const layer of ['halo', 'whisker']) {
      for (const stroke of strokes) this.draw('line', { ...stroke, class: layer });
    }
  }

  rule(): void {
    this.skip(24);
    this.draw('line', { x1: LEFT, x2: RIGHT, y1: this.y, y2: this.y, stroke: colours.rule });
    this.skip(20);
  }

  svg(title: string, description: string): string {
    const height = Math.ceil(this.y + MARGIN - 16);
    const styles = [
      `text { font-family: ${family}; font-variant-numeric: tabular-nums; }`,
      ...Object.entries(fonts).map(
        ([name, { sizePx, isBold }]) =>
          `.${name} { font-size: ${sizePx}px; font-weight: ${isBold ? 600 : 400}; }`,
      ),
      `.halo { stroke: ${colours.background}; stroke-width: 3.6; stroke-linecap: square; }`,
      `.whisker { stroke: ${colours.text}; stroke-width: 1.4; stroke-linecap: square; }`,
    ];
    const content = [
      element('title', { id: 'title' }, escapeText(oneLine(title))),
      element('desc', { id: 'description' }, escapeText(oneLine(description))),
      element('style', {}, escapeText(styles.join('\n'))),
      element('rect', {
        x: 0.5,
        y: 0.5,
        width: WIDTH - 1,
        height: height - 1,
        rx: 10,
        fill: colours.background,
        stroke: colours.border,
      }),
      ...this.#markup,
    ];
    const root = {
      xmlns: 'http://www.w3.org/2000/svg',
      width: WIDTH,
      height,
      viewBox: `0 0 ${WIDTH} ${height}`,
      role: 'img',
      'aria-labelledby': 'title description',
    };
    return `${element('svg', root, `\n${content.join('\n')}\n`)}\n`;
  }
}

export function wrapped(text: string, width: number, font: FontName, colour: Colour = 'text'): Run[][] {
  return wrap(text, width, (line) => textWidth(line, fonts[font])).map((line) => [
    { text: line, font, colour },
  ]);
}

export function widthOf(runs: readonly Run[]): number {
  const gaps = RUN_GAP * (runs.length - 1);
  return runs.reduce((sum, { text, font }) => sum + textWidth(text, fonts[font]), gaps);
}

export function heightOf(lines: readonly (readonly Run[])[]): number {
  return lines.reduce((sum, runs) => sum + Math.max(...runs.map(({ font }) => lineHeight(font))), 0);
}

function lineHeight(font: FontName): number {
  return fonts[font].sizePx * LINE_HEIGHT_EM;
}

function ascent(font: FontName): number {
  return fonts[font].sizePx * ASCENT_EM;
}
