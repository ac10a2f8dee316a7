// The results as a picture: the figures against their bounds, then every comparison as bars. It has a background of
// its own, so that it is legible on light and on dark pages, and the same results always make the same bytes.

import { drawComparison } from './chart/comparison.ts';
import { drawFigures } from './chart/figures.ts';
import { Page } from './chart/page.ts';
import { type Results, verdictOf } from './results.ts';
import {
  capitalised,
  machineInWords,
  medianInWords,
  runInWords,
  summaryOf,
  versionsInWords,
} from './wording.ts';

const TITLE = 'Headgate benchmark';

export function chart(results: Results): string {
  const { figures, comparisons, machine, versions } = results;
  const page = new Page();
  page.paragraph(TITLE, 'title', 'text');
  page.skip(6);
  const run = `${capitalised(runInWords(results))}.`;
  if (results.mode === 'smoke') page.paragraph(run, 'strong', 'missed');
  else page.paragraph(run, 'note', 'quiet');
  page.paragraph(machineInWords(machine), 'note', 'quiet');
  page.paragraph(versionsInWords(versions), 'note', 'quiet');
  if (figures.length > 0) drawFigures(page, figures);
  for (const comparison of comparisons) drawComparison(page, comparison);
  page.rule();
  page.paragraph(
    'Bars and numbers in bold: the median of the rounds. Whiskers: from the lowest round to the highest.',
    'small',
    'quiet',
  );
  return page.svg(TITLE, descriptionOf(results));
}

/** For those who do not see it: the figures, whose numbers are all that is claimed. */
function descriptionOf({ figures, comparisons }: Results): string {
  const said = figures.map((figure) => `${figure.title}: ${medianInWords(figure)}, ${verdictOf(figure)}.`);
  const shown = comparisons.map(({ title }) => title);
  return [
    ...(figures.length === 0 ? [] : [`${capitalised(summaryOf(figures))}.`, ...said]),
    ...(shown.length === 0 ? [] : [`Bars compare: ${shown.join('; ')}.`]),
  ].join(' ');
}
