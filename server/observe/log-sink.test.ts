import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { hasProgram, waitUntil } from '../../tests/harness/waiting.ts';
import { LARGE_WRITE_BYTES, openLogSink } from './log-sink.ts';

const module = new URL('./log-sink.ts', import.meta.url).href;

test('if the reader of the log stalls, lines are dropped and counted', async (t) => {
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

test('buffered lines are written before the process ends, also after an uncaught error', async () => {
  const script = (end: string): string => `
    import { openLogSink } from '${module}';
    const sink = openLogSink(2, 4096, String);
    for (let number = 0; number < 100; number++) sink.write('line ' + number + '\\n');
    ${end}`;
  const linesOf = async (end: string): Promise<number> => {
    const args = ['--input-type=module', '-e', script(end)];
    const { stderr } = await promisify(execFile)(process.execPath, args).catch((error) => error);
    return (stderr as string).split('\n').filter((line) => line.startsWith('line ')).length;
  };
  assert.equal(await linesOf('process.exit(0)'), 100);
  assert.equal(await linesOf("throw new Error('a bug')"), 100);
  assert.equal(await linesOf("Promise.reject(new Error('a bug'))"), 100);
  assert.equal(await linesOf(''), 100);
});

/** Creates a folder with a program that writes to its standard error through a sink. */
async function programIn(t: TestContext, script: string): Promise<{ folder: string; command: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-test-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'program.mjs');
  await writeFile(file, `import { openLogSink } from '${module}';\n${script}`);
  return { folder, command: `'${process.execPath}' '${file}'` };
}

function startShell(t: TestContext, program: string, args: readonly string[]): ChildProcess {
  const child = spawn(program, args, { stdio: ['pipe', 'ignore', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

test('if the disk is full, lines are dropped and counted until there is room again', async (t) => {
  const { folder, command } = await programIn(
    t,
    `const sink = openLogSink(2, 4096, (dropped) => 'dropped ' + dropped + '\\n');
     let count = 0;
     const writeOne = () => sink.write('line ' + count++ + ' ' + 'x'.repeat(300) + '\\n');
     while (count < 600) writeOne();
     const writing = setInterval(writeOne, 50);
     process.stdin.on('end', async () => {
       clearInterval(writing);
       await sink.close();
       process.stdout.write(String(count));
     }).resume();`,
  );
  const FULL_AT_BYTES = 128 * 1024;
  const log = join(folder, 'log');
  const wrote = join(folder, 'wrote');
  // A limited file size simulates a full disk: only a part of the last line fits.
  const child = startShell(t, 'bash', [
    '-c',
    `trap '' XFSZ; ulimit -f ${FULL_AT_BYTES / 1024}; exec ${command} 2>> '${log}' > '${wrote}'`,
  ]);
  const read = (): Promise<string> => readFile(log, 'utf8').catch(() => '');
  await waitUntil('the disk is full', async () => (await read()).length === FULL_AT_BYTES);
  const before = await read();
  await truncate(log);
  await waitUntil('it is told how many lines are missing', async () => (await read()).includes('dropped'));
  child.stdin!.end();
  await once(child, 'exit');
  const lines = `${before}${await read()}`.trimEnd().split('\n');
  const whole = lines.filter((line) => /^line \d+ x{300}$/.test(line));
  const notes = lines.filter((line) => /^dropped \d+$/.test(line));
  const broken = lines.filter((line) => !whole.includes(line) && !notes.includes(line));
  assert.ok(broken.length <= 1 && broken.every((line) => line.startsWith('line ')), broken.join('\n'));
  const dropped = notes.reduce((sum, line) => sum + Number(line.split(' ')[1]), 0);
  assert.equal(whole.length + dropped, Number(await readFile(wrote, 'utf8')));
});

const withoutScript = !(await hasProgram('script')) && 'this machine has no script';

test('a stalled terminal does not prevent a process from ending', { skip: withoutScript }, async (t) => {
  for (const end of ['await sink.close(); process.exit(0)', 'setTimeout(() => process.exit(0), 100)']) {
    const { folder, command } = await programIn(
      t,
      `import { existsSync, writeFileSync } from 'node:fs';
       const sink = openLogSink(2, 4096, String);
       const place = (name) => new URL(name, import.meta.url);
       writeFileSync(place('started'), String(process.pid));
       const waiting = setInterval(async () => {
         if (!existsSync(place('go'))) return;
         clearInterval(waiting);
         for (let number = 0; number < 2000; number++) sink.write('x'.repeat(100) + '\\n');
         sink.hurry();
         process.on('exit', () => writeFileSync(place('ended'), ''));
         ${end};
       }, 10);`,
    );
    const has = async (name: string): Promise<boolean> =>
      readFile(join(folder, name)).then(
        () => true,
        () => false,
      );
    const terminal = startShell(t, 'script', ['-q', '-c', `exec ${command}`, '/dev/null']);
    let program = 0;
    // The file may exist before its content does. A kill of process 0 would end all tests and their runner.
    await waitUntil('the program runs', async () => {
      program = Number(await readFile(join(folder, 'started'), 'utf8').catch(() => ''));
      return program > 0;
    });
    t.after(() => isThere(program) && process.kill(program, 'SIGKILL'));
    terminal.kill('SIGSTOP');
    await writeFile(join(folder, 'go'), '');
    await waitUntil('the program ends', () => has('ended'));
    await waitUntil('the process is over', () => isOver(program));
  }
});

/** Returns whether the process is a zombie or gone. Its stopped parent cannot wait for it. */
async function isOver(pid: number): Promise<boolean> {
  const state = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ') Z');
  return state.slice(state.lastIndexOf(')')).startsWith(') Z');
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
