import assert from 'node:assert/strict';
import os from 'node:os';
import { test } from 'node:test';
import { headgateVersion, kernelOf, thisMachine, versionsOf } from './machine.ts';

test('the machine is told by what bears on speed, and by nothing else', async () => {
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

test('what a kernel was named by its builder is left out', () => {
  assert.equal(kernelOf('Linux', '6.1.0-18-on-annes-laptop'), 'Linux 6.1.0');
  assert.equal(kernelOf('Darwin', '25.1.0'), 'Darwin 25.1.0');
  assert.equal(kernelOf('Other', 'unnumbered'), 'Other');
});

test('versions that are not known are left out', () => {
  const own = { 'Node.js': process.versions.node, SQLite: process.versions.sqlite };
  assert.deepEqual(versionsOf(), own);
  assert.deepEqual(versionsOf({ PostgreSQL: '18.1', Directus: undefined }), { ...own, PostgreSQL: '18.1' });
});

test('the version says which sources were measured', async () => {
  assert.match(await headgateVersion(), /^\d+\.\d+\.\d+( \([0-9a-f]{7,}\+?\))?$/);
});
