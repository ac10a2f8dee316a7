// The help, derived from the tables of commands, options and settings.

import { settingDescriptions } from '../settings.ts';
import { columns, wrap } from './columns.ts';
import { type Command, commands } from './commands.ts';
import { options } from './options.ts';

const everywhere = ['help', 'version'];

export function overview(): string[] {
  return [
    ...wrap(
      'Headgate takes in the records and interactions that organisations upload, checks them, and keeps them ' +
        'in a database.',
    ),
    '',
    'Usage: headgate COMMAND [OPTIONS]',
    '',
    'Commands:',
    ...columns([...commands.map((command) => [shortUsage(command), command.summary]), helpEntry], '  '),
    '',
    'Options:',
    ...optionLines(['database', ...everywhere]),
    '',
    'First steps:',
    ...columns(
      [
        ['headgate serve', 'start the service; on this machine it makes a key to try it with'],
        ['headgate orgs create acme', 'make an organisation'],
        ['headgate keys issue --org acme', 'issue a key to it, which its uploads carry'],
      ],
      '  ',
    ),
    '',
    ...wrap(
      'Every command works while a server runs on the same database. `headgate serve --help` lists the settings.',
    ),
    'Exit codes: 0 done; 1 could not be done; 2 the command line or a setting is wrong. `load` has its own.',
  ];
}

const helpEntry = ['help [COMMAND]', 'Show this, or the help of a command.'];

/** The help of a group of commands, such as `keys`. */
export function groupHelp(group: readonly Command[]): string[] {
  const [word] = group[0]!.words;
  return [
    `Usage: headgate ${word} COMMAND [OPTIONS]`,
    '',
    'Commands:',
    ...columns(
      group.map((command) => [shortUsage(command), command.summary]),
      '  ',
    ),
    '',
    `\`headgate ${word} COMMAND --help\` tells more of one.`,
  ];
}

export function commandHelp(command: Command): string[] {
  return [
    ...wrap(`Usage: ${usage(command)}`),
    '',
    ...wrap(`${command.summary} ${command.details}`.trim()),
    ...(command.args.length === 0
      ? []
      : [
          '',
          'Arguments:',
          ...columns(
            command.args.map(({ name, help }) => [name, help]),
            '  ',
          ),
        ]),
    '',
    'Options:',
    ...optionLines([...command.requiredOptions, ...command.options, 'help']),
    ...settingLines(command),
    '',
    'Examples:',
    ...command.examples.map((example) => `  ${example}`),
  ];
}

/** `headgate keys issue --org NAME|ID [--scope SCOPE]... [--json]` */
export function usage(command: Command): string {
  const required = command.requiredOptions.map(optionUsage);
  const optional = command.options.map(
    (name) => `[${optionUsage(name)}]${options[name]!.repeats ? '...' : ''}`,
  );
  return ['headgate', shortUsage(command), ...required, ...optional].join(' ');
}

function shortUsage({ words, args }: Command): string {
  return [...words, ...args.map(({ name, repeats }) => (repeats ? `${name}...` : name))].join(' ');
}

function optionUsage(name: string): string {
  const { value } = options[name]!;
  return value === null ? `--${name}` : `--${name} ${value}`;
}

function optionLines(names: readonly string[]): string[] {
  const rows = names.map((name) => {
    const { short, help } = options[name]!;
    return [`${short === undefined ? '' : `-${short}, `}${optionUsage(name)}`, help];
  });
  return columns(rows, '  ');
}

/** For the commands whose settings are more than the options that they take. */
function settingLines({ words: [word], options: taken }: Command): string[] {
  if (word !== 'serve' && !taken.includes('key-file')) return [];
  const settings = settingDescriptions.filter(({ isOfServer }) => isOfServer === (word === 'serve'));
  const rows = settings.map(({ env, accepts, default: defaultText, help }) => [
    env,
    `${help} Takes ${accepts}.${defaultText === null ? '' : ` Default: ${defaultText}.`}`,
  ]);
  return ['', 'Settings, from the environment:', ...columns(rows, '  ')];
}
