// `headgate load`: uploads files through the API in dependency order, and resumes an interrupted load.

import { setFlagsFromString } from 'node:v8';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { Failure } from '../../failure.ts';
import { shellWord } from '../../shell-word.ts';
import type { Call } from '../call.ts';
import { connect, type Server } from '../connect.ts';
import { type ExitCode, exitCodes, type Io, misused, printJson } from '../io.ts';
import { wholeNumber } from '../options.ts';
import { Display, shown } from './display.ts';
import { isParquetName, type LoadType, mustBeType, typeNamed } from './file-types.ts';
import { type Confirmed, Journal, type JournalEntry, loadIdOf, loadIdsIn } from './journal.ts';
import { type FileOutcome, isStillConfirmed, loadFile } from './load-file.ts';
import { type FileProblem, noParquet, type PlannedFile, planLoad } from './plan.ts';
import { type Finished, inTheWay, RejectedFiles } from './rejected-files.ts';
import {
  type Report,
  reportJson,
  reportLines,
  type Stop,
  type UnfinishedLoad,
  unfinishedLines,
} from './report.ts';
import { addCounts, addRejected, countsOf, newTally, noCounts, type Tally, totalOf } from './tally.ts';

/** The meaning of the exit codes of this command. The help of the command documents them. */
const loadCodes = {
  allAccepted: exitCodes.done,
  someRejected: exitCodes.failed,
  notToTheEnd: exitCodes.misused,
};

const DEFAULT_FOLDER = 'rejected';
const MOST_CONCURRENCY = 64;

interface Choices {
  readonly type: LoadType | null;
  readonly concurrency: number | null;
  readonly folder: string;
  readonly isDryRun: boolean;
  readonly isLenient: boolean;
  readonly isRestart: boolean;
  readonly isJson: boolean;
  /** The command line that resumes the load. */
  readonly command: string;
}

export async function load(call: Call): Promise<ExitCode> {
  const { io, args } = call;
  const choices = readChoices(call);
  if (choices instanceof Failure) return misused(io, choices);
  const server = await connect(call, 'load');
  if (server instanceof Failure) return misused(io, server);

  const { files, leftAlone, problems } = await planLoad(args, choices);
  for (const path of leftAlone) {
    const reason = isParquetName(path) ? noParquet : 'it is not a data file named after a type';
    io.err(`skipped, because ${reason}: ${path}`);
  }
  if (problems.length > 0) {
    for (const problem of problems) io.err(`headgate: ${sentenceOf(problem)}`);
    return misused(io, 'nothing was sent; correct this, then run the same command again');
  }
  if (files.length === 0) {
    return misused(
      io,
      `there is nothing to load in ${args.map(quote).join(', ')}: ${leftAlone.some(isParquetName) ? noParquet : 'no file is named after a type'}`,
    );
  }
  const obstacle = choices.isDryRun
    ? null
    : await inTheWay(choices.folder, new Set(files.map(({ type }) => type)));
  if (obstacle !== null) {
    return misused(
      io,
      `rejected records would be written to ${obstacle}, which contains something else; give another folder with --rejected`,
    );
  }
  keepMemoryFlat();
  const reason = await server.whyNotServing();
  if (reason !== null) return misused(io, reason);
  try {
    return await new Load(io, server, choices, files, leftAlone).run();
  } catch (error) {
    const sentence = whyNotWritten(error, choices.folder);
    if (sentence === null) throw error;
    return misused(io, sentence);
  }
}

/**
 * Keeps V8's space for new objects from growing. If that space grew, a load would take a tenth less CPU time, but a
 * third more memory.
 */
function keepMemoryFlat(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
}

function readChoices({ args, option, isOn }: Call): Choices | Failure {
  const typeWord = option('type');
  const type = typeWord === undefined ? null : typeNamed(typeWord);
  if (typeWord !== undefined && type === null) {
    return new Failure(`--type ${mustBeType(typeWord)}`);
  }
  const concurrency = wholeNumber('concurrency', option('concurrency'), 1, MOST_CONCURRENCY);
  if (concurrency instanceof Failure) return concurrency;
  const typed = (name: string): readonly string[] => {
    const value = option(name);
    return value === undefined ? [] : [`--${name}`, shellWord(value)];
  };
  return {
    type,
    concurrency,
    folder: option('rejected') ?? DEFAULT_FOLDER,
    isDryRun: isOn('dry-run'),
    isLenient: isOn('lenient'),
    isRestart: isOn('restart'),
    isJson: isOn('json'),
    command: [
      'headgate load',
      ...args.map(shellWord),
      ...['type', 'rejected', 'url', 'key-file'].flatMap(typed),
      ...(isOn('lenient') ? ['--lenient'] : []),
    ].join(' '),
  };
}

function sentenceOf({ path, line, reason }: FileProblem): string {
  return `${path}${line === null ? '' : `, line ${line}`}: ${reason}`;
}

/** Returns a sentence if the load could not write to its folder, and null for any other error. */
function whyNotWritten(error: unknown, folder: string): string | null {
  const { code, syscall, path, message } = error as NodeJS.ErrnoException;
  if (code === undefined || syscall === undefined) return null;
  return (
    `the load cannot write to ${folder}: ${path === undefined ? '' : `${path}: `}${message}. ` +
    'Free some space or give another folder with --rejected, then run the same command again'
  );
}

/**
 * The journal is written at the end of each file, and otherwise at most once in this time. A load that is killed and
 * resumed sends again what it sent after the last write. Writing after every request took a tenth of a load's CPU time.
 */
const WRITE_EVERY_MS = 250;

/** One run over all files. */
class Load {
  readonly #io: Io;
  readonly #server: Server;
  readonly #choices: Choices;
  readonly #files: readonly PlannedFile[];
  readonly #leftAlone: readonly string[];
  readonly #id: string;
  readonly #display: Display;
  readonly #journal: Journal;
  readonly #rejected: RejectedFiles;
  readonly #interruption = new AbortController();
  #isStopping = false;
  #isRetrying = false;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  #tally: Tally = newTally();
  #confirmed: { [realPath: string]: Confirmed } = {};
  #unfinished: readonly UnfinishedLoad[] = [];

  constructor(
    io: Io,
    server: Server,
    choices: Choices,
    files: readonly PlannedFile[],
    leftAlone: readonly string[],
  ) {
    const { folder, isLenient, isJson } = choices;
    const named = files.map(({ realPath, type }) => [realPath, type]);
    this.#id = loadIdOf([server.url, isLenient, named]);
    this.#io = io;
    this.#server = server;
    this.#choices = choices;
    this.#files = files;
    this.#leftAlone = leftAlone;
    this.#display = new Display(io, isJson);
    this.#journal = new Journal(folder, this.#id);
    this.#rejected = new RejectedFiles(folder, this.#id);
  }

  async run(): Promise<ExitCode> {
    const { isDryRun, folder } = this.#choices;
    if (isDryRun) return this.#end(await this.#loadAll(), null);
    const held = this.#journal.lock();
    if (held !== null) {
      return misused(
        this.#io,
        `the same load is running already, as process ${held.pid}; wait for its end, or delete ${held.path} if that ` +
          'is another program',
      );
    }
    try {
      this.#unfinished = unfinishedLoads(folder, this.#id);
      for (const one of this.#unfinished) for (const line of unfinishedLines(one)) this.#display.note(line);
      await this.#goOn();
      const stop = await this.#loadAll();
      if (stop === null) {
        const finished = this.#rejected.finish(this.#files);
        this.#journal.remove();
        return this.#end(null, finished);
      }
      if (Object.keys(this.#confirmed).length > 0) this.#write();
      return this.#end(stop, null);
    } finally {
      this.#journal.unlock();
      this.#rejected.removeFolderIfEmpty();
    }
  }

  async #loadAll(): Promise<Stop | null> {
    const onSignal = (): void => this.#onSignal();
    process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
    try {
      for (const file of this.#files) {
        if (this.#confirmed[file.realPath]?.isDone) continue;
        const stop = await this.#load(file);
        if (stop !== null) return stop;
      }
      return null;
    } finally {
      process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
    }
  }

  /** Resumes an earlier run of the same load. Starts from the beginning if records would be missed by resuming. */
  async #goOn(): Promise<void> {
    const entry = this.#choices.isRestart ? null : this.#journal.read();
    const reason = entry instanceof Failure ? entry.reason : entry && (await this.#whyAnew(entry));
    if (reason !== null) this.#display.note(`${reason}; the load starts from the beginning`);
    if (entry === null || entry instanceof Failure || reason !== null) {
      this.#journal.remove();
      this.#rejected.goOn({});
      return;
    }
    this.#rejected.goOn(entry.rejectedBytes);
    this.#confirmed = { ...entry.files };
    this.#tally = entry.tally;
  }

  async #whyAnew(entry: JournalEntry): Promise<string | null> {
    if (entry.keyId !== this.#server.keyId) {
      // Only the server can tell which organisation a key belongs to. Another organisation would not have the records
      // that the earlier run sent, so all records are sent again.
      return 'the earlier run used another key, which may belong to another organisation';
    }
    if (!this.#rejected.have(entry.rejectedBytes)) {
      return 'some records that an earlier run had rejected no longer exist';
    }
    for (const file of this.#files) {
      const confirmed = entry.files[file.realPath];
      if (confirmed === undefined || (await isStillConfirmed(file, confirmed))) continue;
      return `${file.path} has changed since it was partly loaded`;
    }
    return null;
  }

  async #load(file: PlannedFile): Promise<Stop | null> {
    const confirmed = this.#confirmed[file.realPath] ?? null;
    const counts = noCounts();
    const { isDryRun, isLenient, concurrency } = this.#choices;
    const broken = await loadFile({
      server: this.#server,
      file,
      confirmed,
      isDryRun,
      isLenient,
      concurrency,
      notStored: new Set(isDryRun ? this.#files.map(({ type }) => type) : []),
      signal: this.#interruption.signal,
      isStopping: () => this.#isStopping,
      onStart: ({ line, readBytes }) =>
        this.#display.start(
          file.path,
          file.sizeBytes,
          readBytes,
          confirmed === null ? null : `${file.format === 'json' ? 'record' : 'line'} ${shown(line)}`,
        ),
      onRetry: (retry) => {
        this.#isRetrying = true;
        if (this.#isStopping) this.#interruption.abort();
        else this.#display.retry(retry);
      },
      onOutcome: (outcome) => {
        this.#isRetrying = false;
        addCounts(counts, outcome.counts);
        this.#note(file, outcome);
        this.#display.update(counts, outcome.settled.readBytes);
      },
    }).finally(() => this.#display.clear());
    if (broken !== null) return { file: file.path, line: broken.line, reason: broken.reason };
    countsOf(this.#tally, file.type);
    this.#confirm(file, { isDone: true });
    this.#display.end(counts);
    return null;
  }

  #note(file: PlannedFile, { counts, rejected, dropped, settled }: FileOutcome): void {
    addCounts(countsOf(this.#tally, file.type), counts);
    for (const one of rejected) addRejected(this.#tally, file.type, file.path, one);
    for (const { field, count } of dropped) {
      const name = `${file.type}.${field ?? '(others)'}`;
      this.#tally.dropped[name] = (this.#tally.dropped[name] ?? 0) + count;
    }
    if (this.#choices.isDryRun) return;
    this.#rejected.append(file.type, file.path, rejected);
    const { offset, crc32 } = settled;
    this.#confirm(file, { offset, crc32, isDone: false });
  }

  #confirm(file: PlannedFile, now: Partial<Confirmed>): void {
    if (this.#choices.isDryRun) return;
    const before = this.#confirmed[file.realPath] ?? { offset: 0, crc32: 0, isDone: false };
    this.#confirmed[file.realPath] = { ...before, ...now, sizeBytes: file.sizeBytes };
    if (now.isDone || performance.now() - this.#writtenAtMs >= WRITE_EVERY_MS) this.#write();
  }

  #write(): void {
    this.#writtenAtMs = performance.now();
    this.#journal.write({
      command: this.#choices.command,
      keyId: this.#server.keyId,
      files: this.#confirmed,
      rejectedBytes: this.#rejected.bytes(),
      tally: this.#tally,
    });
  }

  /** After the first signal, the requests in flight may finish. A second signal, or one during a retry, aborts them. */
  #onSignal(): void {
    if (this.#isStopping || this.#isRetrying) this.#interruption.abort();
    if (!this.#isStopping) this.#display.note('stopping once the requests in flight have finished');
    this.#isStopping = true;
  }

  #end(stop: Stop | null, finished: Finished | null): ExitCode {
    const { isDryRun, isJson } = this.#choices;
    const report: Report = {
      tally: this.#tally,
      isDryRun,
      stop,
      finished,
      parts: stop === null || isDryRun ? [] : this.#rejected.parts(),
      leftAlone: this.#leftAlone,
      unfinished: this.#unfinished,
    };
    if (isJson) printJson(this.#io, reportJson(report));
    else for (const line of reportLines(report)) this.#io.out(line);
    if (stop !== null) {
      this.#io.err(`headgate: ${sentenceOf({ path: stop.file, line: stop.line, reason: stop.reason })}`);
      this.#io.err(this.#howToGoOn(stop));
      return loadCodes.notToTheEnd;
    }
    return totalOf(this.#tally).rejected === 0 ? loadCodes.allAccepted : loadCodes.someRejected;
  }

  #howToGoOn({ line }: Stop): string {
    const { received } = totalOf(this.#tally);
    if (this.#choices.isDryRun) return 'headgate: nothing was stored, because this was a dry run';
    const first = line === null ? 'Run' : 'Correct it, then run';
    if (received === 0) return `headgate: no records were sent before that. ${first} the same command again`;
    return `headgate: all ${received} records before that are settled. ${first} the same command again to resume there`;
  }
}

/** Returns the unfinished loads in the folder, except this load and the loads that a process is running. */
function unfinishedLoads(folder: string, ownId: string): readonly UnfinishedLoad[] {
  return loadIdsIn(folder).flatMap((id) => {
    const journal = new Journal(folder, id);
    if (id === ownId || journal.heldByAnother() !== null) return [];
    const entry = journal.read();
    if (entry === null || entry instanceof Failure) return [];
    return [{ command: entry.command, parts: new RejectedFiles(folder, id).parts() }];
  });
}
