import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import fc from 'fast-check';
import { printable, printableLines } from './printable.ts';
import { shellWord } from './shell-word.ts';

test('control characters, line breaks and changes of text direction are escaped', () => {
  assert.equal(printable('a\u001b[31mb\u009bc\u007fd'), 'a\\u001b[31mb\\u009bc\\u007fd');
  assert.equal(printable('a\r\nb\u2028c'), 'a\\u000d\\u000ab\\u2028c');
  assert.equal(printable('gpj.\u202eexe\u2066'), 'gpj.\\u202eexe\\u2066');
  assert.equal(printable('\ud800'), '\\ud800');
  assert.equal(printableLines('one\u0007\ntwo\t'), 'one\\u0007\ntwo\\u0009');
});

test('text of any language is unchanged', () => {
  for (const text of ['Café “Nord” – 5 €', 'שלום', 'نیم‌فاصله', '👩‍👧 ❤️', '東京'])
    assert.equal(printable(text), text);
});

test('escaped JSON parses to the same value', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      assert.equal(JSON.parse(printable(JSON.stringify(text))), text);
    }),
  );
});

test('a shell word is printable, and bash reads it as the original text', () => {
  for (const text of ['shops.csv', "it's; $HOME", 'a\u001b[31m\u202e\\ \'"b\nc.csv']) {
    const word = shellWord(text);
    assert.equal(printable(word), word);
    const env = { ...process.env, LC_ALL: 'C.UTF-8' };
    assert.equal(execFileSync('bash', ['-c', `printf %s ${word}`], { env, encoding: 'utf8' }), text);
  }
});
