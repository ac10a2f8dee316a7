import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type BodyReader, READ_AT_ONCE_BYTES, ReadingTurns } from './reading-turns.ts';

const MIB = 1024 * 1024;

const organisationOf = (name: string): number => name.charCodeAt(0);

/** Returns readers that record the order in which their turns begin. */
function readersOf(organisations: string): { readers: BodyReader[]; begun: string[] } {
  const begun: string[] = [];
  const readers = [...organisations].map((name) => ({
    organisation: organisationOf(name),
    costBytes: () => performance.now() * MIB,
    readOn: () => void begun.push(name),
    wait: () => void begun.push(`${name} waits`),
  }));
  return { readers, begun };
}

test('two bodies are read at a time, and waiting organisations then take turns', () => {
  const turns = new ReadingTurns();
  const { readers, begun } = readersOf('aaaaabc');
  assert.deepEqual(
    readers.map((reader) => turns.begin(reader)),
    [true, true, false, false, false, false, false],
  );
  for (const reader of readers) turns.end(reader, 0);
  assert.equal(begun.join(''), 'abc', 'readers that ended while they waited get no turn');
  const again = readersOf('aaaaabc');
  for (const reader of again.readers) turns.begin(reader);
  for (const reader of [0, 1, 2, 5, 6, 3, 4]) turns.end(again.readers[reader]!, 0);
  assert.equal(again.begun.join(''), 'abcaa');
});

test('a large body without a response delays the next body of its organisation only', () => {
  const turns = new ReadingTurns();
  const { readers, begun } = readersOf('aab');
  turns.begin(readers[0]!);
  turns.end(readers[0]!, 12 * MIB);
  for (let small = 0; small < 1000; small++) turns.end(null, READ_AT_ONCE_BYTES);
  assert.equal(turns.begin(readers[1]!), false);
  assert.equal(turns.begin(readers[2]!), true, 'another organisation does not wait');
  turns.end(readers[2]!, 0);
  turns.responseMade(organisationOf('a'), READ_AT_ONCE_BYTES);
  assert.deepEqual(begun, []);
  turns.responseMade(organisationOf('a'), 12 * MIB);
  assert.deepEqual(begun, ['a']);
  turns.end(readers[1]!, 0);
});

test('a client that sends nothing does not delay other bodies', async () => {
  const turns = new ReadingTurns();
  const { readers, begun } = readersOf('abc');
  const stalled = readers.slice(0, 2).map((reader) => ({ ...reader, costBytes: () => MIB }));
  for (const reader of stalled) turns.begin(reader);
  assert.equal(turns.begin(readers[2]!), false);
  await sleep(200);
  assert.deepEqual(begun, ['c']);
  for (const reader of [...stalled, readers[2]!]) turns.end(reader, 0);
});

test('a long body gives way to other organisations, and is read on before the others of its own', async () => {
  const turns = new ReadingTurns();
  const { readers, begun } = readersOf('aaab');
  try {
    for (const reader of readers) turns.begin(reader);
    while (begun.length < 2) await sleep(5);
    turns.end(readers[3]!, 0);
    turns.end(readers[1]!, 0);
    assert.deepEqual(begun, ['a waits', 'b', 'a', 'a']);
    assert.equal(turns.waiting, 0);
  } finally {
    for (const reader of readers) turns.end(reader, 0);
  }
});
