// What a load says at its end: to people in tables and sentences, to programs as one JSON value.

import { problemCodes } from '@headgate/catalogue/problem-codes.ts';
import { columns, wrap } from '../columns.ts';
import { shown } from './display.ts';
import { INTERACTIONS } from './file-types.ts';
import type { Finished } from './rejected-files.ts';
import { type Counts, type Tally, totalOf, typesIn } from './tally.ts';

/** Why a load did not come to its end. */
export interface Stop {
  readonly file: string;
  readonly line: number | null;
  /** A sentence without a full stop. */
  readonly reason: string;
}

export interface Report {
  readonly tally: Tally;
  readonly isDryRun: boolean;
  readonly stop: Stop | null;
  readonly finished: Finished | null;
  readonly leftAlone: readonly string[];
}

const countNames = ['received', 'created', 'updated', 'unchanged', 'rejected'] as const;

export function reportLines(report: Report): readonly string[] {
  const { tally, isDryRun, finished } = report;
  const rows = typesIn(tally).map(({ type, counts }) => [type, ...cells(counts)]);
  if (rows.length > 1) rows.push(['total', ...cells(totalOf(tally))]);
  const heading = ['TYPE', ...countNames.map((name) => name.toUpperCase())];
  return [
    ...(isDryRun ? ['Dry run: nothing was stored. An upload would do this:', ''] : []),
    ...(rows.length === 0 ? ['No records.'] : columns([heading, ...rows])),
    ...uncheckedLines(tally),
    ...droppedLines(tally),
    ...problemLines(tally),
    ...(finished === null ? [] : finishedLines(finished)),
  ];
}

function cells(counts: Counts): readonly string[] {
  return countNames.map((name) => shown(counts[name]));
}

function uncheckedLines(tally: Tally): readonly string[] {
  return typesIn(tally).flatMap(({ type, counts: { unchecked } }) => {
    if (unchecked === 0) return [];
    const why =
      type === INTERACTIONS
        ? 'interactions are only read in a dry run, not sent'
        : 'they refer to records of this run, which a dry run does not store';
    return ['', ...wrap(`${shown(unchecked)} ${type} could not be tried out: ${why}.`)];
  });
}

function droppedLines({ dropped }: Tally): readonly string[] {
  const rows = Object.entries(dropped).map(([field, count]) => [
    `  ${field}`,
    `${shown(count)} ${count === 1 ? 'time' : 'times'}`,
  ]);
  return rows.length === 0 ? [] : ['', 'Dropped, because there are no such fields:', ...columns(rows)];
}

function problemLines({ problems }: Tally): readonly string[] {
  return problems.flatMap(({ type, code, records, examples }) => [
    '',
    ...wrap(`${type}: ${shown(records)} rejected as ${code}. ${problemCodes[code].meaning}`),
    ...columns(
      examples.map(({ file, line, message }) => [`${file}:${line}`, message]),
      '  ',
    ),
    ...(records > examples.length ? [`  … and ${shown(records - examples.length)} more`] : []),
  ]);
}

function finishedLines({ written, setAside }: Finished): readonly string[] {
  return [
    ...setAside.flatMap((path) => [
      '',
      ...wrap(`Rejected records of an earlier load were there already; they are now in ${path}.`),
    ]),
    ...(written.length === 0
      ? []
      : [
          '',
          'The rejected records are in',
          ...written.map((path) => `  ${path}`),
          'Mend what is under "record" in their lines, then load them again:',
          `  headgate load ${written.map(asWord).join(' ')}`,
        ]),
  ];
}

/** As a shell takes it for one word. */
function asWord(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}

export function reportJson({ tally, isDryRun, stop, finished, leftAlone }: Report): unknown {
  return {
    dry_run: isDryRun,
    finished: stop === null,
    stopped: stop,
    types: typesIn(tally).map(({ type, counts }) => ({ type, ...counts })),
    total: totalOf(tally),
    problems: tally.problems,
    dropped_fields: tally.dropped,
    rejected_files: finished?.written ?? [],
    set_aside: finished?.setAside ?? [],
    left_alone: leftAlone,
  };
}
