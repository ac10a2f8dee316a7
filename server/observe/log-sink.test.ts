import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { LARGE_WRITE_BYTES, openLogSink } from './log-sink.ts';

test('a reader that stands still costs lines, which are counted, and neither memory nor time', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-test-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const [go, got] = [join(folder, 'go'), join(folder, 'got')];
  const reader = spawn('sh', ['-c', `while [ ! -e ${go} ]; do sleep 0.02; done; cat > ${got}`], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  t.after(() => reader.kill('SIGKILL'));
  const { fd } = (reader.stdin as unknown as { _handle: { fd: number } })._handle;
  const sink = openLogSink(fd, LARGE_WRITE_BYTES, (dropped) => `dropped ${dropped}\n`);
  const line = (number: number): string => `line ${number} ${'x'.repeat(1000)}\n`;
  const LINES = 10_000;
  for (let number = 0; number < LINES; number++) sink.write(line(number));
  await writeFile(go, '');
  await new Promise((resolve) => setTimeout(resolve, 200));
  await sink.close();
  reader.stdin.end();
  await once(reader, 'exit');

  const lines = (await readFile(got, 'utf8')).trimEnd().split('\n');
  const note = lines.findIndex((found) => found.startsWith('dropped '));
  const dropped = Number(lines[note]!.split(' ')[1]);
  assert.ok(dropped > LINES / 2, `${dropped} dropped`);
  assert.equal(lines.length - 1 + dropped, LINES);
  assert.ok(lines.every((found, at) => at === note || `${found}\n` === line(Number(found.split(' ')[1]))));
});

test('what is held is written before the process ends, also by an error that nobody caught', async () => {
  const module = new URL('./log-sink.ts', import.meta.url).href;
  const script = (end: string): string => `
    import { openLogSink } from '${module}';
    const sink = openLogSink(2, 4096, String);
    for (let number = 0; number < 100; number++) sink.write('line ' + number + '\\n');
    ${end}`;
  const linesOf = async (end: string): Promise<number> => {
    const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script(end)];
    const { stderr } = await promisify(execFile)(process.execPath, args).catch((error) => error);
    return (stderr as string).split('\n').filter((line) => line.startsWith('line ')).length;
  };
  assert.equal(await linesOf('process.exit(0)'), 100);
  assert.equal(await linesOf("throw new Error('a bug')"), 100);
  assert.equal(await linesOf("Promise.reject(new Error('a bug'))"), 100);
  assert.equal(await linesOf(''), 100);
});
