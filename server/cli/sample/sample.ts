// `headgate sample`: writes sample records of every type, and interactions, for trials and benchmarks.

import { date } from '@headgate/catalogue/kinds/date.ts';
import { Flaw, quote } from '@headgate/catalogue/kinds/kind.ts';
import { Failure } from '../../failure.ts';
import { shellWord } from '../../shell-word.ts';
import type { Call } from '../call.ts';
import { columns } from '../columns.ts';
import { type ExitCode, exitCodes, failed, type Io, misused, printJson } from '../io.ts';
import { wholeNumber } from '../options.ts';
import { progressLine } from '../progress.ts';
import { onStopSignal } from '../stop-signal.ts';
import { type FileSummary, SampleFiles } from './files.ts';
import { type Format, formats, prepareFolder, whyUnwritable } from './folder.ts';
import { makeSample } from './make.ts';
import {
  DAY_MS,
  DEFAULT_CUSTOMERS,
  DEFAULT_SEED,
  DEFAULT_UNTIL,
  type SamplePlan,
  samplePlan,
} from './plan.ts';

const MOST_CUSTOMERS = 10_000_000;
const LARGEST_SEED = 2 ** 32 - 1;
/**
 * The earliest and the latest day for --until. Between them, the size of a number shows whether it counts seconds or
 * milliseconds since 1970 (event-timestamp.ts).
 */
const EARLIEST_UNTIL = '1980-01-01';
const LATEST_UNTIL = '2999-12-31';
const KILOBYTE = 1000;
const MEGABYTE = 1e6;

export async function sample({ io, args, option, isOn }: Call): Promise<ExitCode> {
  const folder = args[0]!;
  if (folder === '') return misused(io, 'DIR is empty; name the folder to write to');
  const customers = wholeNumber('customers', option('customers'), 1, MOST_CUSTOMERS) ?? DEFAULT_CUSTOMERS;
  if (customers instanceof Failure) return misused(io, customers);
  const seed = wholeNumber('seed', option('seed'), 0, LARGEST_SEED) ?? DEFAULT_SEED;
  if (seed instanceof Failure) return misused(io, seed);
  const untilDay = dayOf(option('until') ?? DEFAULT_UNTIL);
  if (untilDay instanceof Failure) return misused(io, untilDay);
  const format = formatOf(option('format') ?? 'csv');
  if (format instanceof Failure) return misused(io, format);

  const prepared = await prepareFolder(folder, isOn('force'));
  if (prepared instanceof Failure) return failed(io, prepared);
  const files = new SampleFiles(folder, prepared, format, isOn('gzip'));
  const plan = samplePlan(seed, customers, untilDay);
  const summaries = await write(plan, files, folder, io);
  if (summaries instanceof Failure) return failed(io, summaries);
  if (isOn('json')) {
    return printJson(io, {
      folder,
      customers,
      seed,
      until: option('until') ?? DEFAULT_UNTIL,
      files: summaries,
    });
  }
  for (const row of columns(tableOf(summaries))) io.out(row);
  io.out('');
  io.out(`Load it into a server that is running: HEADGATE_KEY=hg_… headgate load ${shellWord(folder)}`);
  return exitCodes.done;
}

async function write(
  plan: SamplePlan,
  files: SampleFiles,
  folder: string,
  io: Io,
): Promise<readonly FileSummary[] | Failure> {
  const line = progressLine(io);
  const stopListening = onStopSignal(() => {
    line.end();
    files.discard();
    io.err('headgate: stopped before the sample was complete; the partial files are deleted');
  });
  try {
    for (const customersDone of makeSample(plan, files.put)) {
      if (!files.isFull()) continue;
      await files.write();
      if (io.isTerminal) line.show(`writing: ${customersDone} of ${plan.customers} customers`);
    }
    return await files.finish();
  } catch (error) {
    files.discard();
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    return new Failure(whyUnwritable(error as NodeJS.ErrnoException, folder));
  } finally {
    stopListening();
    line.end();
  }
}

/** Returns the number of days from 1970 to the day. */
function dayOf(text: string): number | Failure {
  const isInTime = text >= EARLIEST_UNTIL && text <= LATEST_UNTIL;
  if (date.check(text, true) instanceof Flaw || !isInTime) {
    return new Failure(
      `--until must be a day from ${EARLIEST_UNTIL} to ${LATEST_UNTIL}, as YYYY-MM-DD, not ${quote(text)}`,
    );
  }
  return Date.parse(`${text}T00:00:00Z`) / DAY_MS;
}

function formatOf(text: string): Format | Failure {
  const known = formats.find((format) => format === text);
  return known ?? new Failure(`--format must be ${formats.join(' or ')}, not ${quote(text)}`);
}

function tableOf(summaries: readonly FileSummary[]): string[][] {
  return [
    ['FILE', 'RECORDS', 'SIZE'],
    ...summaries.map(({ file, records, bytes }) => [file, String(records), sizeInWords(bytes)]),
  ];
}

function sizeInWords(bytes: number): string {
  return bytes < MEGABYTE ? `${Math.ceil(bytes / KILOBYTE)} kB` : `${(bytes / MEGABYTE).toFixed(1)} MB`;
}
