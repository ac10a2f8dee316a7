#!/usr/bin/env -S MALLOC_MMAP_THRESHOLD_=4194304 node --min-semi-space-size=8 --max-semi-space-size=8 --max-old-space-size=1024
// Starts Headgate: from its sources in a checkout, otherwise from the compiled package. Even an old Node must be able
// to run this file, in order to start the newer Node of the checkout, or to print an error.
//
// The first line sets what can only be set when Node starts:
// - V8's space for new objects has 8 MB. With the default of 1 MB, the serving thread takes a tenth longer for every
//   interaction. A space that may grow takes tens of megabytes more than Headgate needs.
// - V8's space for old objects has at most 1 GiB in the serving thread. If it may grow further, V8 collects garbage so
//   rarely that the server takes up to a third more memory.
// - glibc returns freed blocks of 4 MiB or more to the system. By default it keeps them once it has seen a few, and after
//   many large bodies the server holds 200 MB that it does not use.

import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const oldest = /\d+(\.\d+)?/.exec(engines.node)[0];

/** @param {string} version */
function isTooOld(version) {
  const [oldestMajor, oldestMinor = 0] = oldest.split('.').map(Number);
  const [major, minor] = version.split('.').map(Number);
  return major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
}

/** Returns the path of the Node that `npm ci` has installed in a checkout, or null if there is none. */
function installedNode() {
  try {
    const packageJson = createRequire(import.meta.url).resolve('node/package.json');
    const { version } = JSON.parse(readFileSync(packageJson, 'utf8'));
    const program = join(dirname(packageJson), 'bin', 'node');
    return !isTooOld(version) && existsSync(program) ? program : null;
  } catch {
    return null;
  }
}

/** @param {string} program */
function startWith(program) {
  const script = fileURLToPath(import.meta.url);
  const child = spawn(program, [...process.execArgv, script, ...process.argv.slice(2)], { stdio: 'inherit' });
  // A terminal sends Ctrl-C to both processes, so this process ignores it. Other signals reach only this process, which
  // passes them on.
  process.on('SIGINT', () => {});
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 1;
    if (signal === null) return;
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

const newerNode = isTooOld(process.versions.node) ? installedNode() : null;
if (newerNode !== null) startWith(newerNode);
else if (isTooOld(process.versions.node)) {
  process.stderr.write(
    `headgate: Node ${process.versions.node} is too old: Headgate needs Node ${oldest} or newer\n`,
  );
  process.exitCode = 2;
} else {
  // If the sources exist, they are used, because the compiled package in a checkout may be out of date.
  const source = new URL('../cli/headgate.ts', import.meta.url);
  await import(
    existsSync(source) ? source.href : new URL('../dist/server/cli/headgate.js', import.meta.url).href
  );
}
