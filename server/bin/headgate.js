#!/usr/bin/env -S node --disable-warning=ExperimentalWarning --min-semi-space-size=8 --max-semi-space-size=8
// Starts Headgate: from its sources in a checkout, in a package from what was built out of them.
// Kept to what old releases of Node understand, so that they can say what is wrong.
//
// The space into which V8 puts new objects is 8 MB from the start, or what V8 allows where memory is scarce: with the
// usual megabyte the serving thread takes a tenth longer for every interaction, and left to grow it takes tens of
// megabytes that it does not need. Both can only be told here.

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
  // Where the sources are, what was once built from them may be out of date.
  const source = new URL('../cli/headgate.ts', import.meta.url);
  await import(
    existsSync(source) ? source.href : new URL('../dist/server/cli/headgate.js', import.meta.url).href
  );
}
