// Reads a Dockerfile, and runs the steps that need no container: copies, and commands of npm and the shell.

import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, matchesGlob, relative } from 'node:path';
import { promisify } from 'node:util';

export interface Instruction {
  readonly word: string;
  /** Everything after the word, on one line. */
  readonly text: string;
}

export interface Stage {
  readonly from: string;
  readonly name: string | null;
  readonly instructions: readonly Instruction[];
}

export function readDockerfile(path: string): readonly Stage[] {
  const lines = readFileSync(path, 'utf8')
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '');
  const stages: (Stage & { instructions: Instruction[] })[] = [];
  for (const line of lines) {
    const [, word, text] = /^([A-Z]+)\s+(.+)$/.exec(line) ?? [];
    if (word === undefined || text === undefined) throw new Error(`not an instruction: ${line}`);
    if (word === 'FROM') {
      const [, from, name] = /^(\S+)(?: AS (\S+))?$/.exec(text)!;
      stages.push({ from: from!, name: name ?? null, instructions: [] });
    } else stages.at(-1)!.instructions.push({ word, text });
  }
  return stages;
}

/** Returns the text of the only instruction with the word. */
export function only({ instructions }: Stage, word: string): string {
  const found = instructions.filter((instruction) => instruction.word === word);
  if (found.length !== 1) throw new Error(`${found.length} instructions ${word}`);
  return found[0]!.text;
}

/** `ENV` as a record. */
export function environmentOf(stage: Stage): Record<string, string> {
  return Object.fromEntries(
    only(stage, 'ENV')
      .split(/\s+/)
      .map((pair) => pair.split(/=(.*)/s).slice(0, 2) as [string, string]),
  );
}

/** Tells whether `.dockerignore` excludes a path, relative to the context. The last pattern that matches decides. */
export function ignoredBy(dockerignore: string): (path: string) => boolean {
  const patterns = readFileSync(dockerignore, 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ isKept: line.startsWith('!'), pattern: line.replace(/^!/, '') }));
  const fits = (path: string, pattern: string): boolean =>
    matchesGlob(path, pattern) || (dirname(path) !== '.' && fits(dirname(path), pattern));
  return (path) => patterns.findLast(({ pattern }) => fits(path, pattern))?.isKept === false;
}

export interface Building {
  readonly context: string;
  readonly isIgnored: (path: string) => boolean;
  /** The folder that stands for `/` in each stage, by the name of the stage. */
  readonly roots: Readonly<Record<string, string>>;
  readonly environment: NodeJS.ProcessEnv;
}

/** Runs the stage with `root` in place of `/`. Absolute paths in the stage's commands become paths under `root`. */
export async function buildStage(stage: Stage, root: string, building: Building): Promise<void> {
  let folder = root;
  for (const { word, text } of stage.instructions) {
    if (word === 'WORKDIR') folder = join(root, text);
    mkdirSync(folder, { recursive: true });
    if (word === 'COPY') copy(text, folder, building);
    if (word === 'RUN') {
      const command = text.replaceAll(/(?<=\s)\/(?=[a-z])/g, `${root}/`);
      await promisify(execFile)('sh', ['-euc', command], { cwd: folder, env: building.environment });
    }
  }
}

function copy(text: string, folder: string, { context, isIgnored, roots }: Building): void {
  const words = text.split(/\s+/);
  const stageName = /^--from=(.+)$/.exec(words[0]!)?.[1];
  const sources = words.slice(stageName === undefined ? 0 : 1, -1);
  const target = join(folder, words.at(-1)!);
  for (const source of sources) {
    const from = stageName === undefined ? join(context, source) : join(roots[stageName]!, source);
    if (!existsSync(from)) throw new Error(`COPY ${text}: there is no ${source}`);
    if (stageName === undefined && isAbsolute(source)) throw new Error(`COPY ${text}: not in the context`);
    // A folder's content is copied, a file under its name.
    const to = statSync(from).isDirectory() ? target : join(target, basename(from));
    const filter = (path: string): boolean =>
      stageName !== undefined || path === context || !isIgnored(relative(context, path));
    if (!filter(from)) throw new Error(`COPY ${text}: .dockerignore keeps ${source} out`);
    cpSync(from, to, { recursive: true, filter, verbatimSymlinks: true });
  }
}
