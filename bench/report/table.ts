// Formats the results for the terminal.

import { type Comparison, type Figure, type Results, type Series, verdictOf } from './results.ts';
import { median, ratioPerRound } from './statistics.ts';
import {
  boundInWords,
  digitsFor,
  machineInWords,
  medianInWords,
  numberInWords,
  roundsInWords,
  runInWords,
  spreadInWords,
  summaryOf,
  versionsInWords,
  withUnit,
} from './wording.ts';
import { charactersOf, wrap } from './wrap.ts';

const WIDTH_CHARACTERS = 110;
const LEAST_FIRST_COLUMN_CHARACTERS = 24;
const GAP = '  ';

export function terminalReport(results: Results): string {
  const { machine, versions, figures, comparisons, leftOut } = results;
  const blocks = [
    [runInWords(results), machineInWords(machine), versionsInWords(versions)].flatMap((line) =>
      wrap(line, WIDTH_CHARACTERS),
    ),
    ...(figures.length === 0 ? [] : [[...figuresTable(figures), '', summaryOf(figures)]]),
    ...comparisons.map(comparisonTable),
    ...(leftOut.length === 0
      ? []
      : [
          [
            'Left out',
            ...leftOut.flatMap(({ contender, reason }) =>
              wrap(`${contender}: ${reason}`, WIDTH_CHARACTERS - GAP.length).map((line) => GAP + line),
            ),
          ],
        ]),
  ];
  return `${blocks.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

/** Returns the cells of a contender: name, median, spread, ratio to the first. The Markdown report uses them, too. */
export function seriesCells(series: Series, first: Series): [string, string, string, string] {
  // Uses the median of the ratios, as the figures do, and not the ratio of the medians.
  const ratio = median(ratioPerRound(series, first));
  return [
    series.contender,
    withUnit(numberInWords(median(series.values)), series.unit),
    spreadInWords(series.values),
    withUnit(numberInWords(ratio), 'ratio'),
  ];
}

export function figureCells(figure: Figure): [string, string, string, string, string] {
  return [
    figure.title,
    boundInWords(figure.bound, figure.unit),
    medianInWords(figure),
    spreadInWords(figure.values, digitsFor(figure)),
    verdictOf(figure),
  ];
}

function figuresTable(figures: readonly Figure[]): string[] {
  return aligned(['Figure', 'Bound', 'Median', 'Spread', 'Verdict'], figures.map(figureCells), [2, 3]);
}

function comparisonTable({ title, conditions, series }: Comparison): string[] {
  const first = series[0]!;
  const rows = series.map((one) => seriesCells(one, first));
  return [
    ...wrap(title, WIDTH_CHARACTERS),
    ...wrap(`${conditions}; ${roundsInWords(first.values)}`, WIDTH_CHARACTERS),
    ...aligned(['Contender', 'Median', 'Spread', 'To the first'], rows, [1, 2, 3]),
  ];
}

/** Aligns the columns. The first column is wrapped to the width that the other columns leave. */
function aligned(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  toTheRight: readonly number[],
): string[] {
  const widths = head.map((_, column) =>
    Math.max(...[head, ...rows].map((row) => charactersOf(row[column]!))),
  );
  const others = widths.slice(1).reduce((sum, width) => sum + GAP.length + width, 0);
  widths[0] = Math.min(widths[0]!, Math.max(LEAST_FIRST_COLUMN_CHARACTERS, WIDTH_CHARACTERS - others));
  const rule = '─'.repeat(widths[0]! + others);
  const lines = [head, ...rows].flatMap((row) => {
    const [start, ...further] = wrap(row[0]!, widths[0]!);
    const cells = [start!, ...row.slice(1)].map((cell, column) => {
      const blanks = ' '.repeat(widths[column]! - charactersOf(cell));
      return toTheRight.includes(column) ? blanks + cell : cell + blanks;
    });
    return [cells.join(GAP).trimEnd(), ...further];
  });
  return [lines[0]!, rule, ...lines.slice(1)];
}
