// The `headgate` executable, which bin/headgate.js starts.

import { printable } from '../printable.ts';
import { keepNewFilesPrivate } from '../private-files.ts';
import { runHeadgate } from './run.ts';

keepNewFilesPrivate();

// A reader such as `head` may close the pipe early; that is its right and no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

// Everything that a command says goes through here, and may hold text of others.
const exitCode = await runHeadgate(process.argv.slice(2), {
  out: (line) => process.stdout.write(`${printable(line)}\n`),
  err: (line) => process.stderr.write(`${printable(line)}\n`),
  isTerminal: process.stderr.isTTY === true,
  get widthCharacters() {
    return process.stderr.columns;
  },
  rewrite: (text) => process.stderr.write(`\r\x1b[2K${printable(text)}`),
  env: process.env,
  nowMs: () => Date.now(),
});

// After a stop that did not wait, something may still be running; what was printed is let out first.
process.stdout.write('', () => process.exit(exitCode));
