#!/usr/bin/env -S node --disable-warning=ExperimentalWarning --min-semi-space-size=8 --max-semi-space-size=8
// Starts Headgate: from the sources in a checkout, from the built files in a package.
// The syntax is limited to what old releases of Node understand, so that they can report that they are too old.
//
// V8's space for new objects (the semi-space) is fixed at 8 MB, or less if memory is scarce. With the default of 1 MB
// each interaction takes a tenth longer; without a limit the space grows to tens of megabytes that are not needed.
// These flags have an effect only on the command line.

import { existsSync, readFileSync } from 'node:fs';

const facts = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const oldest = /\d+(\.\d+)?/.exec(facts.engines.node)[0];
const [oldestMajor, oldestMinor = 0] = oldest.split('.').map(Number);
const [major, minor] = process.versions.node.split('.').map(Number);

if (major < oldestMajor || (major === oldestMajor && minor < oldestMinor)) {
  process.stderr.write(
    `headgate: Node ${process.versions.node} is too old: Headgate needs Node ${oldest} or newer\n`,
  );
  process.exitCode = 2;
} else {
  // The sources come first, because built files beside them may be out of date.
  const source = new URL('../cli/headgate.ts', import.meta.url);
  await import(
    existsSync(source) ? source.href : new URL('../dist/server/cli/headgate.js', import.meta.url).href
  );
}
