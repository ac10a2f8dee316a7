// Declares the options of all commands in one table, and parses command lines.

import { parseArgs } from 'node:util';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { actions } from '../access/scopes.ts';
import { Failure } from '../failure.ts';
import { nearName } from '../near-name.ts';
import { durationForm, settingDescriptions } from '../settings.ts';
import { DEFAULT_CUSTOMERS, DEFAULT_SEED, DEFAULT_UNTIL } from './sample/plan.ts';

interface Option {
  /** The placeholder for the option's value in the help; null for a switch, which takes no value. */
  readonly value: string | null;
  readonly help: string;
  readonly short?: string;
  readonly repeats?: boolean;
}

const valueNames: Readonly<Record<string, string>> = {
  host: 'H',
  port: 'P',
  database: 'D',
  workers: 'N',
  url: 'URL',
  'key-file': 'FILE',
};

const settingOptions: Record<string, Option> = {};
for (const { flag, env, accepts, default: defaultText, help } of settingDescriptions) {
  if (flag === null) continue;
  const otherwise = defaultText === null ? env : `${env}, or else ${defaultText}`;
  settingOptions[flag] = {
    value: valueNames[flag]!,
    help: `${help} Takes ${accepts}. Default: ${otherwise}.`,
  };
}

export const spreadsheetSafeMisused = '--spreadsheet-safe is for CSV; give --format csv';

export const options: Readonly<Record<string, Option>> = {
  ...settingOptions,
  org: { value: 'NAME|ID', help: 'The organisation, by its name or its id.' },
  scope: {
    value: 'SCOPE',
    repeats: true,
    help:
      `What the key may do: ${actions.join(', ')}. A data scope can be limited to one type, as in ` +
      'data:write:shops. Can be given several times. Default: all of them.',
  },
  name: { value: 'LABEL', help: 'A label that helps people recognise the key.' },
  expires: { value: 'DURATION', help: `How long the key is valid: ${durationForm}. Default: no limit.` },
  overlap: {
    value: 'DURATION',
    help: `How long the old key keeps working: ${durationForm}; 0s ends it now. Default: 24h.`,
  },
  from: { value: 'D', help: 'The database to copy from: sqlite:PATH or postgres://…. It is only read.' },
  to: { value: 'D', help: 'The database to copy to. Its tables are created if it is empty.' },
  customers: {
    value: 'N',
    help: `The number of customers, which determines all other numbers. Default: ${DEFAULT_CUSTOMERS}.`,
  },
  seed: {
    value: 'S',
    help: `A whole number; a different one produces different records. Default: ${DEFAULT_SEED}.`,
  },
  until: { value: 'DATE', help: `The last day of the data. Default: ${DEFAULT_UNTIL}.` },
  format: {
    value: 'csv|ndjson',
    help: 'The format of the records: csv or ndjson. Default: csv.',
  },
  gzip: { value: null, help: 'Compress every file with gzip.' },
  force: { value: null, help: 'Replace existing files, once the new ones are complete.' },
  type: {
    value: 'TYPE',
    help: 'The type of all files, instead of the one in their names: a record type, or user-interactions.',
  },
  'dry-run': { value: null, help: 'Check everything, but store nothing.' },
  rejected: { value: 'DIR', help: 'The folder to write rejected records to. Default: ./rejected.' },
  concurrency: {
    value: 'N',
    help: 'The number of parallel requests, 1 to 64. Default: 4, or 32 for interactions.',
  },
  lenient: { value: null, help: 'Drop unknown fields instead of rejecting the record.' },
  restart: {
    value: null,
    help: 'Start from the beginning, even if an earlier run of the same load was interrupted.',
  },
  out: { value: 'FILE', help: 'Write to this file. It appears only when it is complete.' },
  file: { value: 'FILE', help: 'Read the query from this file; - means standard input.' },
  param: {
    value: 'VALUE',
    repeats: true,
    help:
      'The value of the next ? in the query: a number, true, false or null if it is one in JSON, otherwise a text. ' +
      'Write --param=-5 if it begins with a hyphen. Can be given several times.',
  },
  'spreadsheet-safe': {
    value: null,
    help:
      'In CSV, put an apostrophe before texts that a spreadsheet would run as formulas. Do not load such a file ' +
      'again: the apostrophes would become part of the data.',
  },
  'text-ids': {
    value: null,
    help: 'In Parquet, write ids as texts, for Spark, which cannot read columns of the type UUID.',
  },
  since: {
    value: 'POSITION',
    help:
      'Write only what has changed after this position, including what is marked as deleted. It is in the file ' +
      '`position` of `export all`, or was shown by the previous export.',
  },
  after: { value: 'POSITION', help: 'The position after which changes are printed; 0 for the beginning.' },
  follow: { value: null, help: 'Wait for further changes, and print them as well.' },
  status: { value: 'STATUS', help: 'Only uploads with this status: success, partial or error.' },
  key: { value: 'KEY_ID', help: 'Only uploads with this key.' },
  limit: { value: 'N', help: 'The maximum number of uploads to show. Default: 100.' },
  by: { value: 'day|type|key', help: 'What to add up by.' },
  holdout: {
    value: 'SEGMENT',
    help: 'Compare with this segment, whose members get no recommendations.',
  },
  note: { value: 'TEXT', help: 'A note for people. Default: the note in the file, or none.' },
  'include-deleted': { value: null, help: 'Also export the records that are marked as deleted.' },
  json: { value: null, help: 'Print one JSON value, for programs.' },
  help: { value: null, short: 'h', help: 'Show help, also after a command.' },
  version: { value: null, short: 'v', help: 'Show the version.' },
};

/** Returns the whole number that an option was given, or null if it was not given. */
export function wholeNumber(
  name: string,
  text: string | undefined,
  least: number,
  most: number,
): number | null | Failure {
  if (text === undefined) return null;
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= least && number <= most) return number;
  return new Failure(`--${name} must be a whole number from ${least} to ${most}, not ${quote(text)}`);
}

/** A parsed command line: its words in order, and its options by name. */
export interface Given {
  readonly words: readonly string[];
  readonly options: ReadonlyMap<string, readonly string[]>;
}

export function readCommandLine(args: readonly string[]): Given | Failure {
  const { tokens } = parseArgs({
    args: [...args],
    strict: false,
    allowPositionals: true,
    tokens: true,
    options: Object.fromEntries(
      Object.entries(options).map(([name, { value, short, repeats }]) => [
        name,
        {
          type: value === null ? 'boolean' : 'string',
          multiple: repeats === true,
          ...(short ? { short } : {}),
        },
      ]),
    ),
  });
  const words: string[] = [];
  const found = new Map<string, string[]>();
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value);
    if (token.kind !== 'option') continue;
    const { name, rawName, value, inlineValue } = token;
    // An SQL query may begin with a comment.
    if (/^--\s/.test(rawName)) {
      words.push(args[token.index]!);
      continue;
    }
    const option = Object.hasOwn(options, name) ? options[name]! : null;
    if (option === null) {
      const near = nearName(name, Object.keys(options));
      return new Failure(`there is no option ${rawName}${near === null ? '' : `; did you mean --${near}?`}`);
    }
    if (option.value === null) {
      if (value !== undefined) return new Failure(`${rawName} takes no value, but was given ${quote(value)}`);
    } else if (value === undefined || (!inlineValue && /^-./.test(value))) {
      return new Failure(`${rawName} needs a value: ${rawName} ${option.value}`);
    }
    if (found.has(name) && !option.repeats) return new Failure(`${rawName} is given more than once`);
    found.set(name, [...(found.get(name) ?? []), value ?? '']);
  }
  return { words, options: found };
}
