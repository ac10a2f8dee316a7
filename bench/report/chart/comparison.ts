// One comparison as bars from zero, so that lengths can be compared by eye; Headgate's stand out.

import type { Comparison, Series } from '../results.ts';
import { median, spread } from '../statistics.ts';
import { isMoreBetter, numberInWords, roundsInWords, spreadInWords } from '../wording.ts';
import { colours, heightOf, LEFT, type Page, RIGHT, type Run, widthOf, wrapped } from './page.ts';

const NAME_WIDTH = 226;
const BARS_FROM = 280;
const BAR_HEIGHT = 16;
const NUMBERS_GAP = 12;
const LEAST_ROW_HEIGHT = 27;

export function drawComparison(page: Page, { title, conditions, series }: Comparison): void {
  const { unit, values } = series[0]!;
  page.rule();
  page.paragraph(title, 'heading', 'text');
  page.skip(3);
  page.paragraph(conditions, 'note', 'quiet');
  const better = isMoreBetter(unit) ? 'longer is better' : 'shorter is better';
  page.paragraph(`${unit}, ${better}; ${roundsInWords(values)}`, 'note', 'quiet');
  page.skip(10);

  const largest = Math.max(...series.flatMap((one) => one.values));
  const numbersWidth = Math.max(...series.map((one) => widthOf(numbersOf(one))));
  const length = RIGHT - numbersWidth - NUMBERS_GAP - BARS_FROM;
  const top = page.y;
  for (const one of series) drawSeries(page, one, (value) => BARS_FROM + (value / largest) * length);
  page.draw('line', { x1: BARS_FROM, x2: BARS_FROM, y1: top, y2: page.y, stroke: colours.quiet });
}

function drawSeries(page: Page, series: Series, x: (value: number) => number): void {
  const { contender, values } = series;
  const name = wrapped(contender, NAME_WIDTH, isHeadgate(series) ? 'strong' : 'label');
  const height = Math.max(LEAST_ROW_HEIGHT, heightOf(name) + 8);
  const middle = page.y + height / 2;
  page.skip(height);
  page.centred(name, LEFT, middle);

  const { lowest, highest } = spread(values);
  page.draw('rect', {
    x: BARS_FROM,
    y: middle - BAR_HEIGHT / 2,
    // A thousandth of the longest is still seen to be there.
    width: Math.max(2, x(median(values)) - BARS_FROM),
    height: BAR_HEIGHT,
    fill: isHeadgate(series) ? colours.headgate : colours.other,
  });
  page.whisker(x(lowest), x(highest), middle);
  page.centred([numbersOf(series)], x(highest) + NUMBERS_GAP, middle);
}

function numbersOf(series: Series): Run[] {
  const { values } = series;
  const number: Run = {
    text: numberInWords(median(values)),
    font: 'strong',
    colour: isHeadgate(series) ? 'headgate' : 'text',
  };
  return values.length === 1
    ? [number]
    : [number, { text: spreadInWords(values), font: 'small', colour: 'quiet' }];
}

function isHeadgate({ contender }: Series): boolean {
  return /^headgate\b/i.test(contender);
}
