// The options that commands take, each declared once, and how a command line is read into them.

import { parseArgs } from 'node:util';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { actions } from '../access/scopes.ts';
import { nearName } from '../near-name.ts';
import { durationForm, settingDescriptions } from '../settings.ts';
import { DEFAULT_CUSTOMERS, DEFAULT_SEED, DEFAULT_UNTIL } from './sample/defaults.ts';

interface Option {
  /** What stands for its value in help; null for a switch, which has none. */
  readonly value: string | null;
  readonly help: string;
  readonly short?: string;
  /** May be given several times. */
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

const settingOptions = Object.fromEntries(
  settingDescriptions.flatMap(({ flag, env, accepts, default: defaultText, help }) =>
    flag === null
      ? []
      : [
          [
            flag,
            {
              value: valueNames[flag] ?? 'VALUE',
              help: `${help} Takes ${accepts}. Default: ${env}${defaultText === null ? '' : `, or else ${defaultText}`}.`,
            },
          ],
        ],
  ),
);

export const options: Readonly<Record<string, Option>> = {
  ...settingOptions,
  org: { value: 'NAME|ID', help: 'The organisation, by its name or its id.' },
  scope: {
    value: 'SCOPE',
    repeats: true,
    help:
      `What the key may do: ${actions.join(', ')}; the data ones can be narrowed to a type, as in ` +
      'data:write:shops. Can be given several times. Default: all four.',
  },
  name: { value: 'LABEL', help: 'A label by which people tell the key from others.' },
  expires: { value: 'DURATION', help: `When the key ends, from now: ${durationForm}. Default: never.` },
  overlap: {
    value: 'DURATION',
    help: `How long the old key goes on working: ${durationForm}; 0s ends it now. Default: 24h.`,
  },
  from: { value: 'D', help: 'The database to copy from: sqlite:PATH or postgres://…. It is only read.' },
  to: { value: 'D', help: 'The database to copy to. It is made ready if it is new.' },
  customers: {
    value: 'N',
    help: `How many customers; the rest follows from that. Default: ${DEFAULT_CUSTOMERS}.`,
  },
  seed: { value: 'S', help: `A whole number; another one gives other records. Default: ${DEFAULT_SEED}.` },
  until: { value: 'DATE', help: `The last day on which anything happens. Default: ${DEFAULT_UNTIL}.` },
  format: {
    value: 'csv|ndjson',
    help: 'How records are written: csv or ndjson. Default: csv for sample, ndjson for export.',
  },
  gzip: { value: null, help: 'Pack every file with gzip.' },
  force: { value: null, help: 'Replace what is there already, once the new is complete.' },
  type: {
    value: 'TYPE',
    help: 'The type of every file, instead of what their names say: a record type, or user-interactions.',
  },
  'dry-run': { value: null, help: 'Have everything checked, and nothing stored.' },
  rejected: { value: 'DIR', help: 'The folder to write rejected records to. Default: ./rejected.' },
  concurrency: {
    value: 'N',
    help: 'How many requests are under way at once, 1 to 64. Default: 4, or 32 for interactions.',
  },
  lenient: { value: null, help: 'Drop fields that a type does not have, instead of rejecting the record.' },
  restart: { value: null, help: 'Begin anew, even if an earlier run of the same load was interrupted.' },
  out: { value: 'FILE', help: 'Write to this file, which is there only once it is complete.' },
  'spreadsheet-safe': {
    value: null,
    help:
      'In CSV, put an apostrophe before texts that a spreadsheet would run as formulas. Such a file is for people; it ' +
      'is not meant to be loaded again.',
  },
  'include-deleted': { value: null, help: 'Also write the records that are marked as deleted.' },
  json: { value: null, help: 'Print one JSON value, for programs.' },
  help: { value: null, short: 'h', help: 'Show help, also after a command.' },
  version: { value: null, short: 'v', help: 'Show the version.' },
};

/** What was typed: words in order, and options by name. */
export interface Given {
  readonly words: readonly string[];
  readonly options: ReadonlyMap<string, readonly string[]>;
}

/** A command line that cannot be meant, in one sentence. Returned, not thrown. */
export class Misuse {
  readonly message: string;
  constructor(message: string) {
    this.message = message;
  }
}

export function readCommandLine(args: readonly string[]): Given | Misuse {
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
    const option = Object.hasOwn(options, name) ? options[name]! : null;
    if (option === null) {
      const near = nearName(name, Object.keys(options));
      return new Misuse(`there is no option ${rawName}${near === null ? '' : `; did you mean --${near}?`}`);
    }
    if (option.value === null) {
      if (value !== undefined) return new Misuse(`${rawName} takes no value, but was given ${quote(value)}`);
    } else if (value === undefined || (!inlineValue && /^-./.test(value))) {
      return new Misuse(`${rawName} needs a value: ${rawName} ${option.value}`);
    }
    if (found.has(name) && !option.repeats) return new Misuse(`${rawName} is given more than once`);
    found.set(name, [...(found.get(name) ?? []), value ?? '']);
  }
  return { words, options: found };
}
