// The entry point of the `headgate` executable. It is started by bin/headgate.js.

import { printable } from '../printable.ts';
import { keepNewFilesPrivate } from '../private-files.ts';
import { runHeadgate } from './run.ts';

const USUAL_WIDTH_CHARACTERS = 80;

keepNewFilesPrivate();

// A reader such as `head` may close the pipe early. The process then exits without an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

// All output goes through `printable`, because it may contain text from clients or files.
const exitCode = await runHeadgate(process.argv.slice(2), {
  out: (line) => process.stdout.write(`${printable(line)}\n`),
  err: (line) => process.stderr.write(`${printable(line)}\n`),
  isTerminal: process.stderr.isTTY === true,
  get widthCharacters() {
    return process.stderr.columns;
  },
  get outWidthCharacters() {
    // A terminal of unknown size reports a width of 0.
    return process.stdout.isTTY === true ? process.stdout.columns || USUAL_WIDTH_CHARACTERS : undefined;
  },
  rewrite: (text) => process.stderr.write(`\r\x1b[2K${printable(text)}`),
  env: process.env,
  nowMs: () => Date.now(),
});

// A forced stop may leave work running, so the process exits explicitly, once the output is flushed.
process.stdout.write('', () => process.exit(exitCode));
