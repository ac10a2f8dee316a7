// Builds the final report of a load: tables and sentences for people, or one JSON value for programs.

import { problemCodes } from '@headgate/catalogue/problem-codes.ts';
import { shellWord } from '../../shell-word.ts';
import { columns, wrap } from '../columns.ts';
import { shown } from './display.ts';
import type { Finished } from './rejected-files.ts';
import { type Counts, type Tally, totalOf, typesIn } from './tally.ts';

/** Why a load did not finish. */
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
  /** The files with the rejected records of a load that has not finished. */
  readonly parts: readonly string[];
  readonly leftAlone: readonly string[];
  readonly unfinished: readonly UnfinishedLoad[];
}

/** Another load that has not finished. */
export interface UnfinishedLoad {
  readonly command: string;
  /** The files with the records that were rejected in that load so far. */
  readonly parts: readonly string[];
}

/** Returns the notice that is shown at the start of a load. */
export function unfinishedLines({ command, parts }: UnfinishedLoad): readonly string[] {
  return [
    `an earlier load has not finished: ${command} resumes it, or starts it again with --restart`,
    ...parts.map((path) => `the records that it has rejected so far are in ${path}`),
  ];
}

const countNames = ['received', 'created', 'updated', 'unchanged', 'rejected'] as const;

export function reportLines(report: Report): readonly string[] {
  const { tally, isDryRun, finished, parts } = report;
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
    ...(parts.length === 0 ? [] : partLines(parts)),
  ];
}

function cells(counts: Counts): readonly string[] {
  return countNames.map((name) => shown(counts[name]));
}

function uncheckedLines(tally: Tally): readonly string[] {
  return typesIn(tally).flatMap(({ type, counts: { unchecked } }) => {
    if (unchecked === 0) return [];
    const why = 'they refer to records of this run, which a dry run does not store';
    return ['', ...wrap(`${shown(unchecked)} ${type} could not be checked: ${why}.`)];
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
    ...wrap(`${type}: ${shown(records)} rejected as ${code}. ${meaningOf(code)}`.trimEnd()),
    ...columns(
      examples.map(({ file, line, message }) => [line === null ? file : `${file}:${line}`, message]),
      '  ',
    ),
    ...(records > examples.length ? [`  … and ${shown(records - examples.length)} more`] : []),
  ]);
}

/** Returns the meaning of a code, or an empty string for an unknown code, which a newer server may send. */
function meaningOf(code: string): string {
  return Object.hasOwn(problemCodes, code) ? problemCodes[code as keyof typeof problemCodes].meaning : '';
}

function partLines(parts: readonly string[]): readonly string[] {
  return [
    '',
    'The records rejected so far are in',
    ...parts.map((path) => `  ${path}`),
    ...wrap(
      'When the load has finished, they are in a file named after the type, which can be loaded again.',
    ),
  ];
}

function finishedLines({ written, setAside }: Finished): readonly string[] {
  return [
    ...setAside.flatMap((path) => [
      '',
      ...wrap(`The rejected records of an earlier load were moved to ${path}.`),
    ]),
    ...(written.length === 0
      ? []
      : [
          '',
          'The rejected records are in',
          ...written.map((path) => `  ${path}`),
          'Correct the "record" in each line, then load them again:',
          `  headgate load ${written.map(shellWord).join(' ')}`,
        ]),
  ];
}

export function reportJson(report: Report): unknown {
  const { tally, isDryRun, stop, finished, parts, leftAlone, unfinished } = report;
  return {
    dry_run: isDryRun,
    finished: stop === null,
    stopped: stop,
    types: typesIn(tally).map(({ type, counts }) => ({ type, ...counts })),
    total: totalOf(tally),
    problems: tally.problems,
    dropped_fields: tally.dropped,
    rejected_files: finished?.written ?? parts,
    set_aside: finished?.setAside ?? [],
    left_alone: leftAlone,
    unfinished_loads: unfinished.map((load) => ({ command: load.command, rejected_files: load.parts })),
  };
}
