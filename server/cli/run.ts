// Runs one command line: finds the command, checks its arguments and options, runs it, and returns the exit code.

import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { Failure } from '../failure.ts';
import { nearName } from '../near-name.ts';
import { StoreUnavailable, StoreUnusable } from '../store/store.ts';
import type { Call } from './call.ts';
import { type Command, commands } from './commands.ts';
import { commandHelp, groupHelp, overview, usage } from './help.ts';
import { type ExitCode, exitCodes, failed, type Io, misused } from './io.ts';
import { type Given, options, readCommandLine } from './options.ts';
import { version } from './version.ts';

export async function runHeadgate(args: readonly string[], io: Io): Promise<ExitCode> {
  const given = readCommandLine(args);
  if (given instanceof Failure) return misused(io, given);
  if (given.options.has('version')) {
    io.out(version);
    return exitCodes.done;
  }
  const [first, ...others] = given.words;
  if (first === undefined || first === 'help') return showHelp(io, others);
  if (given.options.has('help')) return showHelp(io, given.words);

  const command = commandFor(given.words);
  if (command instanceof Failure) return misused(io, command);
  const call = callOf(command, given, io);
  if (call instanceof Failure) return misused(io, call);
  try {
    return await command.run(call);
  } catch (error) {
    if (error instanceof StoreUnusable || error instanceof StoreUnavailable) return failed(io, error.message);
    throw error;
  }
}

function showHelp(io: Io, words: readonly string[]): ExitCode {
  // `export` is a command as well as the first word of `export all`.
  const exact = commands.find((command) => command.words.join(' ') === words.join(' '));
  const isGroup = words.length === 1 && exact === undefined;
  const group = isGroup ? commands.filter((command) => command.words[0] === words[0]) : [];
  const command = exact ?? (words.length === 0 || group.length > 0 ? null : commandFor(words));
  if (command instanceof Failure) return misused(io, command);
  const lines = command !== null ? commandHelp(command) : group.length > 0 ? groupHelp(group) : overview();
  for (const line of lines) io.out(line);
  return exitCodes.done;
}

function commandFor(words: readonly string[]): Command | Failure {
  const command = commands.find((candidate) => candidate.words.every((word, place) => word === words[place]));
  if (command !== undefined) return command;
  const [first, second] = words as [string, string?];
  const seconds = commands.flatMap(({ words: [group, name] }) => (group === first && name ? [name] : []));
  if (seconds.length === 0) {
    const firsts = [...new Set(commands.map((candidate) => candidate.words[0]!)), 'help'];
    return new Failure(`there is no command ${quote(first)}; ${hint(first, firsts)}`);
  }
  if (second === undefined) return new Failure(`${first} needs one of ${seconds.join(', ')} after it`);
  return new Failure(`${first} has no command ${quote(second)}; ${hint(second, seconds)}`);
}

function hint(word: string, known: readonly string[]): string {
  const near = nearName(word, known);
  return near === null ? `there is ${known.join(', ')}` : `did you mean ${near}?`;
}

function callOf(command: Command, given: Given, io: Io): Call | Failure {
  const { args: wanted = [], requiredOptions = [] } = command;
  const called = command.words.join(' ');
  const taken = [...requiredOptions, ...command.options];
  for (const name of given.options.keys()) {
    if (taken.includes(name)) continue;
    const near = nearName(name, taken);
    const takes =
      near === null
        ? `it takes ${taken.map((option) => `--${option}`).join(', ')}`
        : `did you mean --${near}?`;
    return new Failure(`${called} takes no --${name}; ${takes}`);
  }
  const args = given.words.slice(command.words.length);
  const next = wanted[args.length];
  const missing =
    (next?.optional ? undefined : next?.name) ??
    requiredOptions
      .filter((name) => !given.options.has(name))
      .map((name) => `--${name} ${options[name]!.value}`)[0];
  if (missing !== undefined) return new Failure(`${called} needs ${missing}: ${usage(command)}`);
  const surplus = args[wanted.length];
  if (surplus !== undefined && !wanted.at(-1)?.repeats) {
    return new Failure(`${called} does not take the argument ${quote(surplus)}: ${usage(command)}`);
  }
  return {
    io,
    args,
    option: (name) => given.options.get(name)?.[0],
    optionAll: (name) => given.options.get(name) ?? [],
    isOn: (name) => given.options.has(name),
  };
}
