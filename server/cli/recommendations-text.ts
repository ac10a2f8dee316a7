// Renders the recommendation report for a terminal: tables with a bar for each rate. Columns that do not fit are left
// out, and named below.

import type {
  HoldoutComparison,
  HoldoutDifference,
  HoldoutStudents,
  OrganicWindowFigures,
  RecommendationsGroup,
  RecommendationsReport,
  TouchFigures,
  WindowDays,
  WindowFigures,
} from '@headgate/client/recommendations.ts';
import { printable } from '../printable.ts';
import { columns, wrap } from './columns.ts';
import { shown } from './load/display.ts';
import { missingData } from './missing-data.ts';
import { progressBar } from './progress.ts';

/** The figures of a row: those of one group, either recommended or organic. */
interface Line {
  readonly labels: readonly string[];
  readonly figures: TouchFigures<WindowFigures | OrganicWindowFigures>;
}

interface Column<Figures> {
  readonly heading: string;
  readonly cell: (figures: Figures) => string;
  /** Columns with lower numbers are left out first. Infinity if the column is always shown. */
  readonly rank: number;
}

const activityColumns: readonly Column<TouchFigures<WindowFigures>>[] = [
  { heading: 'ENGAGEMENTS', cell: ({ engagements }) => shown(engagements), rank: 2 },
  { heading: 'TOUCHES', cell: ({ touches }) => shown(touches), rank: Infinity },
  { heading: 'STUDENTS', cell: ({ students }) => shown(students), rank: 3 },
  { heading: 'RECOMMENDATIONS', cell: ({ recommendation_ids }) => shown(recommendation_ids), rank: 0 },
  {
    heading: 'CODES PER VIEW',
    cell: ({ discount_codes_per_page_view: ratio }) => (ratio === null ? '–' : ratio.toFixed(3)),
    rank: 1,
  },
];

/** A rate means little without its interval and the number of episodes, so these are left out last. */
const windowColumns: readonly Column<WindowFigures | OrganicWindowFigures>[] = [
  { heading: 'EPISODES', cell: ({ episodes }) => shown(episodes), rank: 6 },
  { heading: 'CONVERTED', cell: ({ converted }) => shown(converted), rank: 3 },
  { heading: 'PURCHASES', cell: ({ purchases }) => shown(purchases), rank: 5 },
  { heading: 'AMOUNT', cell: ({ amount }) => money(amount), rank: 4 },
  { heading: 'SAVINGS', cell: ({ savings }) => money(savings), rank: 0 },
  { heading: 'STRICT', cell: ({ strict_purchases }) => shown(strict_purchases), rank: 1 },
  {
    heading: 'ASSISTED',
    cell: (figures) => ('assisted_purchases' in figures ? shown(figures.assisted_purchases) : ''),
    rank: 2,
  },
  { heading: 'RATE', cell: ({ rate }) => percent(rate), rank: Infinity },
  {
    heading: '95 % INTERVAL',
    cell: ({ rate_low, rate_high }) =>
      rate_low === null ? '' : `${percent(rate_low)} – ${percent(rate_high)}`,
    rank: 7,
  },
];

const holdoutColumns: readonly Column<HoldoutStudents>[] = [
  { heading: 'STUDENTS', cell: ({ students }) => shown(students), rank: 0 },
  {
    heading: 'PURCHASES EACH',
    cell: ({ purchases_per_student: each }) => perStudent(each),
    rank: Infinity,
  },
  { heading: 'AMOUNT EACH', cell: ({ amount_per_student: each }) => perStudent(each), rank: 1 },
];

const SHORTEST_BAR_CHARACTERS = 6;
const LONGEST_BAR_CHARACTERS = 24;
const GAP_CHARACTERS = 2;

/** Returns the lines of the report. No line is longer than the width, unless even the shortest table is. */
export function recommendationsText(report: RecommendationsReport, widthCharacters: number): string[] {
  const { from, to, by, as_of, windows_days, groups, notes } = report;
  const omitted = new Set<string>();
  const lines = groups.flatMap((group) => linesOf(group, by));
  const labels = by === null ? ['INTERACTIONS'] : [by.toUpperCase().replaceAll('_', ' '), 'INTERACTIONS'];
  const rates = lines.flatMap(({ figures }) => windows_days.map((days) => figures.windows[days].rate ?? 0));
  const largestRate = Math.max(0, ...rates);
  const missing = missingData(as_of);
  const late = missing === null ? '' : `; ${missing}`;
  const text = [
    ...wrap(`From ${from} to ${to}, in UTC. State of the data: ${as_of.at}${late}.`, widthCharacters),
    '',
    ...coverageLines(report, widthCharacters),
  ];
  if (lines.length === 0) text.push('', 'There are no interactions and no purchases after them.');
  else {
    text.push('', ...table(labels, lines, activityColumns, widthCharacters, omitted));
    // One table for all windows, so that their columns and bars can be compared.
    const rows = windows_days.flatMap((days) =>
      lines.map((line) => ({ labels: line.labels, figures: line.figures.windows[days] })),
    );
    const [heading, ...ofRows] = table(labels, rows, windowColumns, widthCharacters, omitted, largestRate);
    for (const [at, days] of windows_days.entries()) {
      const ofWindow = ofRows.slice(at * lines.length, (at + 1) * lines.length);
      text.push('', `Purchases within ${inDays(days)} after a touch:`, heading!, ...ofWindow);
    }
  }
  if (report.holdout !== null) text.push('', ...holdoutLines(report.holdout, widthCharacters, omitted));
  text.push('');
  for (const note of notes) text.push(...listItem(note, widthCharacters));
  if (omitted.size > 0) {
    const names = [...omitted].map((heading) => heading.toLowerCase()).join(', ');
    text.push(...listItem(`Left out, because the terminal is too narrow: ${names}.`, widthCharacters));
  }
  return text;
}

function linesOf(group: RecommendationsGroup, by: RecommendationsReport['by']): readonly Line[] {
  const value = by === null ? [] : [printable(group[by] ?? '(none)')];
  // The value is shown once for both lines.
  return [
    { labels: [...value, 'recommended'], figures: group.recommended },
    { labels: [...value.map(() => ''), 'organic'], figures: group.organic },
  ];
}

function coverageLines({ coverage }: RecommendationsReport, widthCharacters: number): readonly string[] {
  const { interactions, transactions } = coverage;
  const sentences = [
    `Interactions: ${shown(interactions.total)}, of which ${shown(interactions.used)} are used, ` +
      `${shown(interactions.without_student)} have no student and ${shown(interactions.other_items)} are with ` +
      'other items than shops and offers.',
    `Transactions: ${shown(transactions.total)}, of which ${shown(transactions.used)} are used, ` +
      `${shown(transactions.without_student)} have no student and ${shown(transactions.without_created)} have ` +
      'no time.',
  ];
  const { service_without_recommendation_id: withoutId, recommendation_id_without_service: withoutSource } =
    coverage;
  if (withoutId > 0) {
    sentences.push(`Interactions with the source SERVICE and no recommendation id: ${shown(withoutId)}.`);
  }
  if (withoutSource > 0) {
    sentences.push(
      `Interactions with a recommendation id and no source, which count as organic: ${shown(withoutSource)}.`,
    );
  }
  return sentences.flatMap((sentence) => wrap(sentence, widthCharacters));
}

interface TableRow<Figures> {
  readonly labels: readonly string[];
  readonly figures: Figures;
}

/** Lays out the columns that fit. Rows with a rate get a bar in the remaining width if `largestRate` is given. */
function table<Figures extends object>(
  labels: readonly string[],
  rows: readonly TableRow<Figures>[],
  possible: readonly Column<Figures>[],
  widthCharacters: number,
  omitted: Set<string>,
  largestRate: number | null = null,
): readonly string[] {
  const labelsCharacters = sum(
    labels.map((label, at) => Math.max(...[label, ...rows.map((row) => row.labels[at]!)].map(lengthOf))),
  );
  const filled = possible.map((column) => {
    const cells = [column.heading, ...rows.map(({ figures }) => column.cell(figures))];
    const characters = Math.max(...cells.map(lengthOf));
    return { ...column, characters, cells: cells.map((cell) => cell.padStart(characters)) };
  });
  const restOf = (shownColumns: typeof filled): number =>
    widthCharacters -
    labelsCharacters -
    GAP_CHARACTERS * (labels.length + shownColumns.length - 1) -
    sum(shownColumns.map(({ characters }) => characters));
  const barCharacters = largestRate === null ? 0 : GAP_CHARACTERS + SHORTEST_BAR_CHARACTERS;
  let fitting = filled;
  while (restOf(fitting) < barCharacters) {
    const lowest = Math.min(...fitting.map(({ rank }) => rank));
    if (lowest === Infinity) break;
    for (const { rank, heading } of fitting) if (rank === lowest) omitted.add(heading);
    fitting = fitting.filter(({ rank }) => rank !== lowest);
  }
  const barRoom = Math.min(LONGEST_BAR_CHARACTERS, restOf(fitting) - GAP_CHARACTERS);
  const barOf = ({ figures }: TableRow<Figures>): string => {
    const rate = 'rate' in figures ? (figures.rate as number | null) : null;
    if (!largestRate || rate === null || barRoom < SHORTEST_BAR_CHARACTERS) return '';
    return progressBar(rate / largestRate, barRoom);
  };
  return columns([
    [...labels, ...fitting.map(({ cells }) => cells[0]!), ''],
    ...rows.map((row, at) => [...row.labels, ...fitting.map(({ cells }) => cells[at + 1]!), barOf(row)]),
  ]);
}

function holdoutLines(
  holdout: HoldoutComparison,
  widthCharacters: number,
  omitted: Set<string>,
): readonly string[] {
  const { purchases_per_student, amount_per_student } = holdout.difference;
  const rows = [
    { labels: ['with'], figures: holdout.with_recommendations },
    { labels: ['without'], figures: holdout.without_recommendations },
  ];
  const sentences = [
    `Difference in purchases: ${shownDifference(purchases_per_student)}.`,
    `Difference in amount: ${shownDifference(amount_per_student)}.`,
    `Members who were served by mistake: ${shown(holdout.served_by_mistake)}.`,
  ];
  return [
    ...wrap(`Holdout ${printable(holdout.segment)}:`, widthCharacters),
    ...table(['RECOMMENDATIONS'], rows, holdoutColumns, widthCharacters, omitted),
    ...sentences.flatMap((sentence) => wrap(sentence, widthCharacters)),
  ];
}

function shownDifference({ value, low, high }: HoldoutDifference): string {
  if (value === null) return 'unknown, because one side has no students';
  if (low === null || high === null) return perStudent(value);
  return `${perStudent(value)} (95 % interval: ${perStudent(low)} to ${perStudent(high)})`;
}

function listItem(text: string, widthCharacters: number): readonly string[] {
  return wrap(text, widthCharacters - 2).map((line, at) => (at === 0 ? '- ' : '  ') + line);
}

function percent(share: number | null): string {
  return share === null ? '–' : `${(share * 100).toFixed(2)} %`;
}

function perStudent(value: number | null): string {
  return value === null ? '–' : value.toLocaleString('en', { maximumFractionDigits: 3 });
}

function money(amount: number): string {
  return amount.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}

function inDays(days: WindowDays): string {
  return days === 1 ? '1 day' : `${days} days`;
}

function lengthOf(text: string): number {
  return [...text].length;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
