// Reads and runs the examples of a page of the docs: all shell blocks of a page in one shell, in order, as a reader
// would paste them, in an empty folder with a server that was just started.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface Example {
  /** The line of the page on which the block begins. */
  readonly line: number;
  readonly language: string;
  /** What follows the language: `exit=1`, `needs=docker`. */
  readonly marks: readonly string[];
  readonly text: string;
  /** Which part of the output is shown, from a comment `<!-- shows PATH -->` before the block; null for all. */
  readonly shows: string | null;
}

const fence = /^```(\S*) *(.*)$/;
const showsComment = /^<!-- shows (\S+) -->$/;

export function examplesOf(markdown: string): readonly Example[] {
  const lines = markdown.split('\n');
  const examples: Example[] = [];
  for (let at = 0; at < lines.length; at++) {
    const opening = fence.exec(lines[at]!);
    if (opening === null) continue;
    const closing = lines.indexOf('```', at + 1);
    assert.notEqual(closing, -1, `the block of line ${at + 1} is not closed`);
    examples.push({
      line: at + 1,
      language: opening[1]!,
      marks: opening[2] === '' ? [] : opening[2]!.split(' '),
      text: lines.slice(at + 1, closing).join('\n'),
      shows: showsComment.exec(lines[at - 1] ?? '')?.[1] ?? null,
    });
    at = closing;
  }
  return examples;
}

export function markOf({ marks }: Example, name: string): string | null {
  return marks.find((mark) => mark.startsWith(`${name}=`))?.slice(name.length + 1) ?? null;
}

export interface Shown {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

const PAGE_TIMEOUT_MS = 120_000;

/** Makes the first command that fails decide the exit code of a script, so that later commands hide no failure. */
const noteFirstFailure = "trap 'status=$?; ((failed)) || failed=$status' ERR\nset -E\n";

/** Runs the scripts one after the other in one shell, so that each sees the variables of those before it. */
export async function runInOneShell(
  scripts: readonly string[],
  folder: string,
  env: NodeJS.ProcessEnv,
): Promise<readonly Shown[]> {
  const output = (at: number, what: string): string => join(folder, `.example-${at}.${what}`);
  const wrapped = scripts.map(
    (script, at) =>
      `failed=0\n{\n${script}\n} >'${output(at, 'out')}' 2>'${output(at, 'err')}'\n` +
      `echo $failed >'${output(at, 'exit')}'\n`,
  );
  const file = join(folder, '.examples.sh');
  await writeFile(file, noteFirstFailure + wrapped.join(''));
  const shell = spawn('bash', ['-o', 'pipefail', file], {
    cwd: folder,
    env,
    stdio: 'ignore',
    timeout: PAGE_TIMEOUT_MS,
  });
  await once(shell, 'exit');
  return Promise.all(
    scripts.map(async (script, at) => {
      const texts = ['exit', 'out', 'err'].map((what) => readFile(output(at, what), 'utf8'));
      const [exit, stdout, stderr] = await Promise.all(texts).catch(() => {
        throw new Error(`the shell did not come to the end of:\n${script}`);
      });
      return { exitCode: Number(exit), stdout: stdout!, stderr: stderr! };
    }),
  );
}

const uuid = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/.source;
const dateTime = /\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?/.source;
const changing = new RegExp(`(${uuid}|${dateTime}|…)`, 'i');

/**
 * Compares the two, except for values that differ from run to run: ids and times that the reader did not give, and
 * the parts that the page omits with an ellipsis.
 */
export function assertShows(actual: unknown, expected: unknown, given: string, path = 'the answer'): void {
  if (typeof expected === 'string') {
    assert.equal(typeof actual, 'string', `${path} is no text but ${JSON.stringify(actual)}`);
    assert.match(actual as string, patternOf(expected, given), path);
  } else if (Array.isArray(expected)) {
    assert.ok(Array.isArray(actual), `${path} is no array but ${JSON.stringify(actual)}`);
    assert.equal(actual.length, expected.length, `${path} has another length`);
    for (const [at, item] of expected.entries()) assertShows(actual[at], item, given, `${path}[${at}]`);
  } else if (typeof expected === 'object' && expected !== null) {
    assert.ok(
      typeof actual === 'object' && actual !== null,
      `${path} is no object but ${JSON.stringify(actual)}`,
    );
    assert.deepEqual(Object.keys(actual), Object.keys(expected), `${path} has other fields`);
    for (const [name, value] of Object.entries(expected)) {
      assertShows((actual as Record<string, unknown>)[name], value, given, `${path}.${name}`);
    }
  } else {
    assert.deepEqual(actual, expected, path);
  }
}

/** Does not compare numbers in text for people (rates, sizes, seconds). Numbers in JSON are compared. */
export function assertPrints(actual: string, expected: string, given: string): void {
  const spaced = (text: string): string =>
    text
      .replace(/[ \t]+/g, ' ')
      .replace(/ $/gm, '')
      .trim();
  assert.match(spaced(actual), patternOf(spaced(expected), given));
}

function patternOf(expected: string, given: string): RegExp {
  const source = expected.split(changing).map((part) => {
    if (part === '…') return '[^]*?';
    const isOwn = changing.test(part) && !given.includes(part);
    if (isOwn) return part.length === 36 ? uuid : dateTime;
    return part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  });
  return new RegExp(`^${source.join('')}$`, 'i');
}

/** Returns the part of a value at a path such as `batches[0].data.errors`. */
export function partAt(value: unknown, path: string): unknown {
  const steps = path.split(/[.[\]]+/).filter((step) => step !== '');
  return steps.reduce((part, step) => (part as Record<string, unknown> | undefined)?.[step], value);
}
