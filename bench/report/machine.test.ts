import assert from 'node:assert/strict';
import os from 'node:os';
import { test } from 'node:test';
import { headgateVersion, kernelOf, thisMachine, versionsOf } from './machine.ts';

test('the description of the machine contains only what affects speed', async () => {
  const machine = await thisMachine(os.tmpdir());
  assert.deepEqual(Object.keys(machine), [
    'cpu',
    'cores',
    'memoryBytes',
    'architecture',
    'kernel',
    'fileSystem',
  ]);
  assert.notEqual(machine.cpu, '');
  assert.ok(Number.isInteger(machine.cores) && machine.cores >= 1);
  assert.ok(machine.memoryBytes > 2 ** 26 && machine.memoryBytes <= os.totalmem());
  assert.equal(machine.architecture, process.arch);
  assert.equal(machine.fileSystem === null, process.platform !== 'linux');
});

test('the suffix of a kernel release that its builder chose is left out', () => {
  assert.equal(kernelOf('Linux', '6.1.0-18-on-annes-laptop'), 'Linux 6.1.0');
  assert.equal(kernelOf('Darwin', '25.1.0'), 'Darwin 25.1.0');
  assert.equal(kernelOf('Other', 'unnumbered'), 'Other');
});

test('unknown versions are left out', () => {
  const own = { 'Node.js': process.versions.node, SQLite: process.versions.sqlite };
  assert.deepEqual(versionsOf(), own);
  assert.deepEqual(versionsOf({ PostgreSQL: '18.1', Directus: undefined }), { ...own, PostgreSQL: '18.1' });
});

test('the version of Headgate includes the commit, if it is known', async () => {
  assert.match(await headgateVersion(), /^\d+\.\d+\.\d+( \([0-9a-f]{7,}\+?\))?$/);
});
