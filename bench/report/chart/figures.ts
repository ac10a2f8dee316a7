// The chart's first panel: how far each figure is from its bound, all on one scale, and then the figures that have none.

import { type Bound, type Figure, verdictOf } from '../results.ts';
import { median, spread } from '../statistics.ts';
import { boundInWords, capitalised, digitsFor, medianInWords, spreadInWords, summaryOf } from '../wording.ts';
import { colours, heightOf, LEFT, type Page, RIGHT, type Run, widthOf, wrapped } from './page.ts';
import { tenth } from './svg.ts';

const TITLE_WIDTH = 276;
/** Where there is no scale beside it. */
const WIDE_TITLE_WIDTH = 560;
const SCALE_FROM = 340;
const SCALE_TO = 616;
const NUMBERS_AT = 646;
const VERDICT_AT = RIGHT - 68;
const NUMBERS_WIDTH = VERDICT_AT - 16 - NUMBERS_AT;
const BAR_HEIGHT = 14;
const LEAST_BAR = 5;
const LEAST_ROW_HEIGHT = 44;
const LEAST_LABEL_DISTANCE = 36;
/** What lies further off is drawn at the edge with an arrow: one figure must not squeeze the others. */
const MOST_DOUBLINGS = 6;

type Bounded = Figure & { readonly bound: Bound };

/** Over the share of the bound, by its logarithm: twice as good is as far to the right as half is to the left. */
interface Scale {
  readonly fromDoublings: number;
  readonly toDoublings: number;
  x(share: number): number;
  isBeyond(share: number): boolean;
}

export function drawFigures(page: Page, figures: readonly Figure[]): void {
  const bounded = figures.filter((figure): figure is Bounded => figure.bound !== null);
  page.rule();
  page.paragraph(bounded.length === 0 ? 'Figures' : 'Figures against their bounds', 'heading', 'text');
  page.skip(3);
  const reading =
    bounded.length === 0 ? '' : ' Right of the line is within the bound; the scale doubles at each step.';
  page.paragraph(`${capitalised(summaryOf(figures))}.${reading}`, 'note', 'quiet');
  page.skip(14);
  if (bounded.length > 0) drawBounded(page, bounded);
  for (const figure of figures) {
    if (figure.bound === null) drawForOrientation(page, figure);
  }
}

/** Above 1 is better than the bound asks, whichever side it is on. */
export function shareOfBound(bound: Bound, value: number): number {
  if ('atLeast' in bound) return Math.max(0, value) / bound.atLeast;
  return value <= 0 ? Number.POSITIVE_INFINITY : bound.below / value;
}

function drawBounded(page: Page, figures: readonly Bounded[]): void {
  const shares = figures.flatMap(({ bound, values }) => values.map((value) => shareOfBound(bound, value)));
  const scale = scaleFor(shares);
  const top = page.y;
  page.skip(20);
  const rows = figures.map((figure) => ({ figure, ...rowFor(page, figure, TITLE_WIDTH) }));
  drawGrid(page, scale, top);
  for (const { figure, title, numbers, middle } of rows) {
    page.centred(title, LEFT, middle);
    drawShare(page, figure, middle, scale);
    page.centred(numbers, NUMBERS_AT, middle);
    drawVerdict(page, figure, middle);
  }
}

/** From `top` to where the page has got. */
function drawGrid(page: Page, scale: Scale, top: number): void {
  const labelEvery = Math.ceil(LEAST_LABEL_DISTANCE / (scale.x(2) - scale.x(1)));
  for (let step = scale.fromDoublings; step <= scale.toDoublings; step++) {
    const x = scale.x(2 ** step);
    const isBound = step === 0;
    const [stroke, width] = isBound ? [colours.text, 1.5] : [colours.grid, 1];
    page.draw('line', { x1: x, x2: x, y1: top + 16, y2: page.y, stroke, 'stroke-width': width });
    if (step % labelEvery !== 0) continue;
    const text = isBound ? 'bound' : step < 0 ? `1/${2 ** -step}` : `${2 ** step}×`;
    page.text([{ text, font: 'small', colour: isBound ? 'text' : 'quiet' }], x, top + 8, 'middle');
  }
}

function drawShare(page: Page, figure: Bounded, middle: number, scale: Scale): void {
  const { bound, values } = figure;
  const isMet = verdictOf(figure) === 'met';
  const fill = isMet ? colours.headgate : colours.missed;
  const share = shareOfBound(bound, median(values));
  const line = scale.x(1);
  const end = scale.x(share);
  // Even a figure right at its bound shows on which side it counts.
  const width = Math.max(LEAST_BAR, Math.abs(end - line));
  page.draw('rect', {
    x: isMet ? line : line - width,
    y: middle - BAR_HEIGHT / 2,
    width,
    height: BAR_HEIGHT,
    fill,
  });
  if (scale.isBeyond(share)) {
    const tip = isMet ? 9 : -9;
    page.draw('path', { d: `M${tenth(end)} ${tenth(middle - 10)}l${tip} 10l${-tip} 10z`, fill });
  } else {
    const { lowest, highest } = spread(values);
    const ends = [lowest, highest].map((value) => scale.x(shareOfBound(bound, value)));
    page.whisker(Math.min(...ends), Math.max(...ends), middle);
  }
}

/** A word, and a mark whose shape says the same as its colour. */
function drawVerdict(page: Page, figure: Bounded, middle: number): void {
  const verdict = verdictOf(figure);
  const colour = verdict === 'met' ? 'headgate' : 'missed';
  const stroke = { fill: 'none', stroke: colours[colour], 'stroke-width': 2.4, 'stroke-linecap': 'round' };
  const d =
    verdict === 'met'
      ? `M${VERDICT_AT - 5} ${tenth(middle)}l3.5 4l6.5 -8`
      : `M${VERDICT_AT - 4} ${tenth(middle - 4)}l8 8m0 -8l-8 8`;
  page.draw('path', { d, ...stroke });
  page.text([{ text: verdict, font: 'strong', colour }], VERDICT_AT + 12, middle + 4.5);
}

function drawForOrientation(page: Page, figure: Figure): void {
  const { title, numbers, middle } = rowFor(page, figure, WIDE_TITLE_WIDTH);
  page.centred(title, LEFT, middle);
  page.centred(numbers, NUMBERS_AT, middle);
  page.centred([[{ text: 'no bound', font: 'small', colour: 'quiet' }]], VERDICT_AT + 12, middle);
}

interface Row {
  readonly title: Run[][];
  readonly numbers: Run[][];
  readonly middle: number;
}

/** Takes the room that the figure's texts need. */
function rowFor(page: Page, figure: Figure, titleWidth: number): Row {
  const title = wrapped(figure.title, titleWidth, 'label');
  const numbers = numbersOf(figure);
  const height = Math.max(LEAST_ROW_HEIGHT, heightOf(title) + 14, heightOf(numbers) + 10);
  page.skip(height);
  return { title, numbers, middle: page.y - height / 2 };
}

/** Median and bound, side by side where they fit, then the spread. */
function numbersOf(figure: Figure): Run[][] {
  const value: Run = { text: medianInWords(figure), font: 'strong', colour: 'text' };
  const rounds: Run = {
    text: spreadInWords(figure.values, digitsFor(figure)),
    font: 'small',
    colour: 'quiet',
  };
  if (figure.bound === null) return [[value], [rounds]];
  const bound: Run = { text: boundInWords(figure.bound, figure.unit), font: 'small', colour: 'quiet' };
  return widthOf([value, bound]) <= NUMBERS_WIDTH ? [[value, bound], [rounds]] : [[value], [bound], [rounds]];
}

function scaleFor(shares: readonly number[]): Scale {
  const limited = shares.map((share) =>
    Math.min(MOST_DOUBLINGS, Math.max(-MOST_DOUBLINGS, Math.log2(share))),
  );
  const fromDoublings = Math.min(-1, Math.floor(Math.min(...limited)));
  const toDoublings = Math.max(1, Math.ceil(Math.max(...limited)));
  const perDoubling = (SCALE_TO - SCALE_FROM) / (toDoublings - fromDoublings);
  return {
    fromDoublings,
    toDoublings,
    x(share) {
      const doublings = Math.min(toDoublings, Math.max(fromDoublings, Math.log2(share)));
      return SCALE_FROM + (doublings - fromDoublings) * perDoubling;
    },
    isBeyond: (share) => Math.abs(Math.log2(share)) > MOST_DOUBLINGS,
  };
}
