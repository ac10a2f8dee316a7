// A folder with files in which `headgate load` and `headgate export` are run as a person runs them, or within the process
// of the test.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { runHeadgate } from '../../server/cli/run.ts';
import { commandLine, type Environment } from './headgate.ts';
import { waitUntil } from './waiting.ts';

export interface Ran {
  readonly exitCode: number | null;
  readonly out: string;
  readonly err: string;
}

export interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<Ran>;
  /** Resolves when the text appears on standard error. */
  saying(text: string): Promise<void>;
}

export interface LoadFolder {
  readonly path: string;
  readonly environment: Environment;
  write(name: string, content: string | Buffer): Promise<void>;
  read(name: string): Promise<string>;
  /** Returns the names in a subfolder, including those that begin with a dot; none if the folder does not exist. */
  names(folder: string): Promise<readonly string[]>;
  start(...args: string[]): Started;
  run(...args: string[]): Promise<Ran>;
  /** Runs it with --json and returns what it prints. */
  json<Result = LoadReport>(...args: string[]): Promise<Result>;
  /**
   * Runs it within this process, which is several times as fast. No other command may run within it meanwhile, because
   * the folder becomes the working directory. What a command writes to standard output by itself is not in `out`.
   */
  runWithin(...args: string[]): Promise<Ran>;
  /** Runs it within this process, with --json, and returns what it prints. */
  jsonWithin<Result = LoadReport>(...args: string[]): Promise<Result>;
}

export interface LoadReport {
  readonly finished: boolean;
  readonly stopped: { readonly file: string; readonly line: number | null; readonly reason: string } | null;
  readonly types: readonly ({ readonly type: string } & LoadCounts)[];
  readonly total: LoadCounts;
  readonly rejected_files: readonly string[];
  readonly set_aside: readonly string[];
}

export interface LoadCounts {
  readonly received: number;
  readonly created: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly rejected: number;
  readonly unchecked: number;
}

export async function loadFolder(t: TestContext, environment: Environment): Promise<LoadFolder> {
  const path = await mkdtemp(join(tmpdir(), 'headgate-load-'));
  t.after(() => rm(path, { recursive: true, force: true }));
  const start = (...args: string[]): Started => {
    const [program, ...rest] = commandLine(args);
    const { PATH, NODE_COMPILE_CACHE } = process.env;
    const env = { PATH, NODE_COMPILE_CACHE, ...environment };
    const child = spawn(program!, rest, { cwd: path, env, stdio: ['ignore', 'pipe', 'pipe'] });
    t.after(() => child.kill('SIGKILL'));
    let [out, err] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk;
    });
    child.stderr.on('data', (chunk: Buffer) => {
      err += chunk;
    });
    const ended = once(child, 'close').then(([exitCode]) => ({
      exitCode: exitCode as number | null,
      out,
      err,
    }));
    return { child, ended, saying: (text) => waitUntil(`it says ${text}`, () => err.includes(text)) };
  };
  const run = (...args: string[]): Promise<Ran> => start(...args).ended;
  const runInFolder = async (...args: string[]): Promise<Ran> => {
    const before = process.cwd();
    process.chdir(path);
    return runWithin(environment, ...args).finally(() => process.chdir(before));
  };
  return {
    path,
    environment,
    async write(name, content) {
      await mkdir(dirname(join(path, name)), { recursive: true });
      await writeFile(join(path, name), content);
    },
    read: (name) => readFile(join(path, name), 'utf8'),
    async names(folder) {
      return (await readdir(join(path, folder)).catch(() => [])).sort();
    },
    start,
    run,
    async json<Result>(...args: string[]) {
      return reportOf<Result>(await run(...args, '--json'));
    },
    runWithin: runInFolder,
    async jsonWithin<Result>(...args: string[]) {
      return reportOf<Result>(await runInFolder(...args, '--json'));
    },
  };
}

function reportOf<Result>({ out, err }: Ran): Result {
  if (out === '') throw new Error(`nothing was printed: ${err}`);
  return JSON.parse(out) as Result;
}

/** Runs a command within this process, for many runs that need no process of their own. Paths must be absolute. */
export async function runWithin(environment: Environment, ...args: string[]): Promise<Ran> {
  let [out, err] = ['', ''];
  const exitCode = await runHeadgate(args, {
    out: (line) => {
      out += `${line}\n`;
    },
    err: (line) => {
      err += `${line}\n`;
    },
    isTerminal: false,
    rewrite: (text) => {
      err += text;
    },
    env: environment,
    nowMs: () => Date.now(),
  });
  return { exitCode, out, err };
}

/** A CSV file without quotes. */
export function csvOf(names: readonly string[], rows: Iterable<readonly unknown[]>): string {
  return [names, ...rows].map((cells) => `${cells.join(',')}\n`).join('');
}
