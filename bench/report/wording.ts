// Formats values for the terminal and for the Markdown report.

import type { Machine } from './machine.ts';
import { type Bound, type Figure, isWithin, type Results, type Series, verdictOf } from './results.ts';
import { median, spread } from './statistics.ts';

type Unit = Figure['unit'] | Series['unit'];

const DIGITS = 3;
/** A double has this many exact decimal digits. */
const MOST_DIGITS = 15;

/** Shows three digits by default, because rounds differ by so much that a fourth digit would mean nothing. */
export function numberInWords(value: number, digits = DIGITS): string {
  if (value === 0) return '0';
  return value.toLocaleString('en-GB', {
    minimumSignificantDigits: digits,
    maximumSignificantDigits: digits,
  });
}

export function withUnit(number: string, unit: Unit): string {
  return unit === 'ratio' ? `${number}×` : `${number} ${unit}`;
}

export function medianInWords(figure: Figure): string {
  return withUnit(numberInWords(median(figure.values), digitsFor(figure)), figure.unit);
}

/** Returns how many digits are needed to show on which side of the bound the figure's median is. */
export function digitsFor({ values, bound }: Figure): number {
  const exact = median(values);
  const isOnItsSide = (digits: number): boolean =>
    bound === null || isWithin(bound, Number(exact.toPrecision(digits))) === isWithin(bound, exact);
  let digits = DIGITS;
  while (digits < MOST_DIGITS && !isOnItsSide(digits)) digits++;
  return digits;
}

export function spreadInWords(values: readonly number[], digits = DIGITS): string {
  if (values.length === 1) return 'one round';
  const { lowest, highest } = spread(values);
  return `${numberInWords(lowest, digits)} to ${numberInWords(highest, digits)}`;
}

export function boundInWords(bound: Bound | null, unit: Unit): string {
  if (bound === null) return 'none';
  const [word, limit] = 'atLeast' in bound ? ['at least', bound.atLeast] : ['below', bound.below];
  // Only measured values are rounded; a bound is shown in full.
  return `${word} ${withUnit(limit.toLocaleString('en-GB', { maximumFractionDigits: 20 }), unit)}`;
}

export function summaryOf(figures: readonly Figure[]): string {
  const verdicts = figures.map(verdictOf).filter((verdict) => verdict !== 'informational');
  if (verdicts.length === 0) return 'no bounds are set';
  return `${verdicts.filter((verdict) => verdict === 'met').length} of ${verdicts.length} bounds met`;
}

export function roundsInWords(values: readonly number[]): string {
  return values.length === 1 ? '1 round' : `${values.length} rounds`;
}

/** Returns whether higher is better: true for rates, false for time and memory. */
export function isHigherBetter(unit: Series['unit']): boolean {
  return unit === 'records/s' || unit === 'requests/s';
}

export function machineInWords({
  cpu,
  cores,
  memoryBytes,
  architecture,
  kernel,
  fileSystem,
}: Machine): string {
  const parts = [
    cpu,
    cores === 1 ? '1 core' : `${cores} cores`,
    `${memoryInWords(memoryBytes)} of memory`,
    architecture,
    kernel,
  ];
  return [...parts, ...(fileSystem === null ? [] : [`stores on ${fileSystem}`])].join(', ');
}

export function memoryInWords(bytes: number): string {
  return `${numberInWords(bytes / 2 ** 30)} GiB`;
}

export function versionsInWords(versions: Results['versions']): string {
  return Object.entries(versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(', ');
}

/** Returns the mode, date and duration of the run, as a sentence without a capital letter and a full stop. */
export function runInWords({ mode, startedAt, elapsedMs }: Results): string {
  const [day, time] = new Date(startedAt).toISOString().split('T') as [string, string];
  const run = `a ${mode} run, ${day} ${time.slice(0, 5)} UTC, took ${durationInWords(elapsedMs)}`;
  return mode === 'smoke' ? `${run}; its numbers mean nothing` : run;
}

export function durationInWords(elapsedMs: number): string {
  const seconds = Math.round(elapsedMs / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes} min ${seconds % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function capitalised(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
