// Builds the help from the tables of commands, options and settings.

import { settingDescriptions } from '../settings.ts';
import { columns, wrap } from './columns.ts';
import { type Command, commands } from './commands.ts';
import { options } from './options.ts';

export function overview(): string[] {
  return [
    ...wrap(
      'Headgate receives the records and interactions that organisations upload, checks them, and stores them ' +
        'in a database. Organisations query them with SQL, and divide their customers into segments.',
    ),
    '',
    'Usage: headgate COMMAND [OPTIONS]',
    '',
    'Commands:',
    ...columns([...commands.map(summaryRow), helpRow], '  '),
    '',
    'Options:',
    ...optionLines(['database', 'help', 'version']),
    '',
    'First steps:',
    ...columns(
      [
        ['headgate serve', 'start the service; with a new database it creates a key to try it with'],
        ['headgate orgs create acme', 'create an organisation'],
        ['headgate keys issue --org acme', 'issue a key to it; set HEADGATE_KEY to this key'],
        ['headgate sample ./sample', 'write sample data'],
        ['headgate load ./sample', 'upload it'],
        ['headgate sql "FROM shops LIMIT 5"', 'query it'],
      ],
      '  ',
    ),
    '',
    ...wrap(
      'Every command except `copy` works while a server runs on the same database. `headgate serve --help` lists ' +
        'the settings.',
    ),
    'Exit codes: 0 success; 1 failure; 2 wrong command line or setting. `load` has its own.',
  ];
}

const helpRow = ['help [COMMAND]', 'Show this help, or the help of a command.'];

/** Returns the help of a group of commands, such as `keys`. */
export function groupHelp(group: readonly Command[]): string[] {
  const [word] = group[0]!.words;
  return [
    `Usage: headgate ${word} COMMAND [OPTIONS]`,
    '',
    'Commands:',
    ...columns(group.map(summaryRow), '  '),
    '',
    `\`headgate ${word} COMMAND --help\` shows the details of a command.`,
  ];
}

export function commandHelp(command: Command): string[] {
  const { summary, details = '', args = [], requiredOptions = [] } = command;
  const argRows = args.map(({ name, help }) => [name, help]);
  return [
    ...wrap(`Usage: ${usage(command)}`),
    '',
    ...wrap(`${summary} ${details}`.trim()),
    ...(args.length === 0 ? [] : ['', 'Arguments:', ...columns(argRows, '  ')]),
    '',
    'Options:',
    ...optionLines([...requiredOptions, ...command.options, 'help'], command),
    ...settingLines(command),
    '',
    'Examples:',
    ...command.examples.map((example) => `  ${example}`),
  ];
}

/** Returns a line such as `headgate keys issue --org NAME|ID [--scope SCOPE]... [--json]`. */
export function usage(command: Command): string {
  const required = (command.requiredOptions ?? []).map((name) => optionUsage(name, command));
  const optional = command.options.map(
    (name) => `[${optionUsage(name, command)}]${options[name]!.repeats ? '...' : ''}`,
  );
  return ['headgate', shortUsage(command), ...required, ...optional].join(' ');
}

function summaryRow(command: Command): string[] {
  return [shortUsage(command), command.summary];
}

function shortUsage({ words, args = [] }: Command): string {
  const shown = args.map(({ name, repeats, optional }) =>
    optional ? `[${name}]` : repeats ? `${name}...` : name,
  );
  return [...words, ...shown].join(' ');
}

function optionUsage(name: string, command?: Command): string {
  const { value } = command?.optionTexts?.[name] ?? options[name]!;
  return value === null ? `--${name}` : `--${name} ${value}`;
}

function optionLines(names: readonly string[], command?: Command): string[] {
  const rows = names.map((name) => {
    const { short } = options[name]!;
    const { help } = command?.optionTexts?.[name] ?? options[name]!;
    return [`${short === undefined ? '' : `-${short}, `}${optionUsage(name, command)}`, help];
  });
  return columns(rows, '  ');
}

/** Returns the lines about environment variables. Only `serve` and the commands that call a server have such lines. */
function settingLines({ words: [word], options: taken }: Command): string[] {
  if (word !== 'serve' && !taken.includes('key-file')) return [];
  const settings = settingDescriptions.filter(({ isOfServer }) => isOfServer === (word === 'serve'));
  const rows = settings.map(({ env, accepts, default: defaultText, help }) => [
    env,
    `${help} Takes ${accepts}.${defaultText === null ? '' : ` Default: ${defaultText}.`}`,
  ]);
  return ['', 'Settings, from the environment:', ...columns(rows, '  ')];
}
