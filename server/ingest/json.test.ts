import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Failure } from '../failure.ts';
import { readJson } from './json.ts';

const LEVELS = 100_000;
const roomy = { containers: 1_000_000, members: 1_000_000, keys: 1_000_000, advice: 'send less' };

function read(text: string) {
  return readJson(Buffer.from(text), roomy);
}

function assertRefused(text: string, reason: RegExp): void {
  const result = read(text);
  assert.ok(result instanceof Failure);
  assert.match(result.reason, reason);
}

function assertRepeated(text: string, key: string): void {
  const result = read(text);
  assert.ok(result instanceof Failure, `the repeated key was not found: ${text}`);
  assert.equal(
    result.reason,
    `The body has the key ${JSON.stringify(key)} twice in one object; use each key once.`,
  );
}

/** Returns JSON text with whitespace wherever the grammar allows it, from a repeating list of gaps. */
function spaced(value: unknown, gaps: readonly string[]): string {
  let drawn = 0;
  const gap = (): string => gaps[drawn++ % gaps.length]!;
  const write = (part: unknown): string => {
    if (part === null || typeof part !== 'object') return gap() + JSON.stringify(part) + gap();
    if (Array.isArray(part)) return `${gap()}[${part.map(write).join(',') || gap()}]${gap()}`;
    const members = Object.entries(part).map(
      ([key, member]) => `${gap()}${JSON.stringify(key)}${gap()}:${write(member)}`,
    );
    return `${gap()}{${members.join(',') || gap()}}${gap()}`;
  };
  return write(value);
}

/** Returns the key with every character as a \u escape, which is another spelling of the same key. */
function escaped(key: string): string {
  const units = Array.from({ length: key.length }, (_, at) => key.charCodeAt(at));
  return `"${units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')}"`;
}

const gapLists = fc.array(fc.constantFrom('', ' ', '\n', '\t', '\r\n  '), { minLength: 1, maxLength: 7 });
const keys = fc.oneof(
  fc.constantFrom('name', 'a', '', '":', '\\', '"', '__proto__', 'constructor', ' : '),
  fc.string({ unit: 'binary', maxLength: 8 }),
);
/** Keys without escapes in JSON, because JSON.parse itself may misread others (nodejs/node#63785). */
const plainKeys = keys.filter((key) => JSON.stringify(key) === `"${key}"`);
const { value: values } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(
      fc.string(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.boolean(),
      fc.constant(null),
    ),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(plainKeys, tie('value'), { maxKeys: 4 }),
  ),
}));
/** Bodies in the form of an upload, whose keys are counted instead of compared. */
const uploads = fc.record({
  records: fc.array(fc.oneof(fc.dictionary(plainKeys, values, { maxKeys: 5 }), values), { maxLength: 5 }),
});

describe('reading JSON', () => {
  test('returns the same as JSON.parse for any text without repeated keys', () => {
    fc.assert(
      fc.property(fc.oneof(values, uploads), gapLists, (value, gaps) => {
        const text = spaced(value, gaps);
        assert.deepEqual(read(text), { value: JSON.parse(text) });
      }),
      { numRuns: 500 },
    );
  });

  test('reads the same from a view that starts anywhere in its buffer', () => {
    fc.assert(
      fc.property(uploads, fc.integer({ min: 0, max: 7 }), (value, offset) => {
        const bytes = Buffer.from(JSON.stringify(value));
        const surrounded = new Uint8Array(offset + bytes.length + 3).fill(0x3a);
        surrounded.set(bytes, offset);
        assert.deepEqual(readJson(surrounded.subarray(offset, offset + bytes.length), roomy), {
          value: JSON.parse(bytes.toString()),
        });
      }),
    );
  });

  test('reads a key with escapes correctly, whatever keys were read before', () => {
    for (const spelling of ['\\u006eame', 'n\\u0061me', 'na\\u006d\\u0065', '\\u006e\\u0061\\u006d\\u0065']) {
      for (let length = 1; length <= 'name'.length; length++) {
        const resembling = spelling.slice(0, length);
        read(`{"records":[{"shop_id":1,${JSON.stringify(resembling)}:2}]}`);
        const record = JSON.stringify({ shop_id: 1, name: '\\"name":' }).replace('"name"', `"${spelling}"`);
        assert.deepEqual(read(`{"records":[${record}]}`), {
          value: { records: [{ shop_id: 1, name: '\\"name":' }] },
        });
      }
    }
  });

  test('finds a repeated key at any depth, with any whitespace and escapes', () => {
    const wrappings = fc.array(
      fc.constantFrom<(inner: string) => string>(
        (inner) => `[${inner}]`,
        (inner) => `[1, ${inner}, {"other": "\\":"}]`,
        (inner) => `{"outer": ${inner}}`,
        (inner) => `{"records":[${inner}]}`,
        (inner) => `{"records":[[1,2,3],${inner}]}`,
        (inner) => `{"text" : "a\\":b","inner" :${inner},"last":"{"}`,
      ),
      { maxLength: 4 },
    );
    const spellings = fc.constantFrom<(key: string) => string>(JSON.stringify, escaped);
    fc.assert(
      fc.property(
        keys,
        fc.dictionary(keys, values, { maxKeys: 4 }),
        spellings,
        spellings,
        gapLists,
        wrappings,
        (key, others, first, second, gaps, wraps) => {
          delete others[key];
          const between = Object.keys(others)
            .map((name) => `${JSON.stringify(name)}${gaps[0]}:${JSON.stringify(others[name])},`)
            .join('');
          const gap = gaps.at(-1)!;
          const object = `{${first(key)}${gap}:1,${between}${second(key)}${gaps[0]}:2}`;
          assertRepeated(
            wraps.reduce((inner, wrap) => wrap(inner), object),
            key,
          );
        },
      ),
      { numRuns: 500 },
    );
  });

  test('finds a repeated key that needs escapes, whatever keys were read before', () => {
    for (const key of ['"', '\n', '\\']) {
      read('{"a":1,"\\\\":2}');
      assertRepeated(`{"a":1,${JSON.stringify(key)}:1,${JSON.stringify(key)}:2}`, key);
    }
  });

  const repeated = {
    'beside each other': '{"name":1,"name":2}',
    'with the same value': '{"name":1,"name":1}',
    'in a record': '{"records":[{"name":"a","name":"b"}]}',
    'if one has a space before its colon': '{"name" :1,"name":2}',
    'in a record, if one has a line break before its colon': '{"records":[{"name"\n:1,"name":2}]}',
    'if one has escapes': '{"\\u006eame":1,"name":2}',
    'if both have different escapes': '{"\\u006eame":1,"n\\u0061me":2}',
    'beside an array in the place of a record': '{"records":[[1]],"name":1,"name":2}',
    'beside a text that holds a quote and a colon': '{"records":[{"a":"\\":","name":1,"name":2}]}',
    'in an object inside a record': '{"records":[{"a":{"name":1,"name":2}}]}',
    'after an object that closed': '{"name":{"x":1},"y":{"name":2},"name":3}',
    'if both values are objects': '{"name":{"a":1},"name":{"b":2}}',
  };
  for (const [where, text] of Object.entries(repeated)) {
    test(`finds a repeated key ${where}`, () => assertRepeated(text, 'name'));
  }

  test('accepts the same key in different objects', () => {
    for (const text of [
      '{"name":{"name":{"name":1}}}',
      '[{"name":1},{"name":2}]',
      '{"records":[{"name":"name"},{"name":"\\"name\\":"}],"name":[]}',
      '{"name":"{\\"name\\":1,\\"name\\":2}"}',
      '{"name":1,"Name":2,"name ":3}',
    ]) {
      assert.deepEqual(read(text), { value: JSON.parse(text) });
    }
  });

  test('refuses many keys so long that V8 would compare each with all others', () => {
    const body = (count: number, key: (at: number) => string): string =>
      `{"records":[{${Array.from({ length: count }, (_, at) => `"${key(at)}":${at}`).join(',')}}]}`;
    const long = (at: number): string => `${'k'.repeat(16_384)}${String(at).padStart(5, '0')}`;
    const startedAtMs = performance.now();
    assertRefused(body(2000, long), /more than 16 keys that are longer than 16383 bytes/);
    assertRefused(
      body(2000, (at) => `\\u006b${long(at)}`),
      /more than 16 keys that are longer/,
    );
    assert.ok(performance.now() - startedAtMs < 2000);
    assert.ok('value' in read(body(16, long)));
    assert.ok('value' in read(body(2000, (at) => String(at).padStart(16_000, 'k'))));
    assert.ok(
      'value' in
        read(
          `{"records":[${Array(100)
            .fill(`{"name":"${'k'.repeat(20_000)}"}`)
            .join(',')}]}`,
        ),
    );
  });

  test('shortens a long repeated key in the message', () => {
    const long = 'k'.repeat(1_000_000);
    assertRepeated(`{"${long}":1,"${long}":2}`, `${long.slice(0, 100)}…`);
  });

  test(`reads ${LEVELS} levels of arrays and objects without a stack overflow`, () => {
    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
      ['[{"a":', '}]'],
    ] as const) {
      const nested = (inner: string): string => open.repeat(LEVELS) + inner + close.repeat(LEVELS);
      assert.ok('value' in read(nested('1')));
      assertRepeated(nested('{"b":1,"b":2}'), 'b');
    }
  });

  test('reports bytes that are not JSON or not UTF-8', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 30 }), (text) => {
        fc.pre(!text.startsWith('\uFEFF'));
        let isJson = true;
        try {
          JSON.parse(text);
        } catch {
          isJson = false;
        }
        const result = read(text);
        if (!isJson) assert.match((result as Failure).reason, /^The body is not valid JSON/);
      }),
    );
    for (const bytes of [
      [0x22, 0xff, 0x22],
      [0x22, 0xc0, 0xaf, 0x22],
      [0x22, 0xed, 0xa0, 0x80, 0x22],
      [0xc3],
    ]) {
      assert.deepEqual(readJson(Uint8Array.from(bytes), roomy), new Failure('The body is not valid UTF-8.'));
    }
  });

  test('skips one byte order mark, and refuses a second one', () => {
    assert.deepEqual(read('\uFEFF{"a":"\uFEFF"}'), { value: { a: '\uFEFF' } });
    assert.ok(read('\uFEFF\uFEFF{}') instanceof Failure);
  });

  test('limits the number of objects and arrays, without counting brackets in texts', () => {
    const holding = (containers: number): string =>
      JSON.stringify({ text: '[{"\\'.repeat(500), list: new Array(containers - 2).fill([]) });
    const readAtMost = (containers: number, most: number) =>
      readJson(Buffer.from(holding(containers)), { ...roomy, containers: most });
    for (const most of [2, 3, 100, 4097]) {
      assert.ok('value' in readAtMost(most, most), `${most} are allowed`);
      assert.deepEqual(
        readAtMost(most + 1, most),
        new Failure(`The body holds more than ${most} objects and arrays; send less.`),
      );
    }
  });

  test('limits the number of keys and elements, without counting commas in texts', () => {
    const keys = (count: number): unknown =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`${at}`, '"a","b",']));
    const elements = (count: number): unknown => new Array(count).fill('0,0,');
    for (const holding of [keys, elements]) {
      for (const members of [1, 2, 1000]) {
        const readHolding = (count: number) =>
          readJson(Buffer.from(JSON.stringify({ list: [holding(count)] }, null, 1)), { ...roomy, members });
        assert.ok('value' in readHolding(members), `${members} are allowed`);
        assert.deepEqual(
          readHolding(members + 2),
          new Failure(`The body holds more than ${members} keys and elements; send less.`),
        );
      }
    }
  });

  test('limits the number of keys, without counting elements and quotes in texts', () => {
    const readHolding = (keys: number) => {
      const object = Object.fromEntries(Array.from({ length: keys }, (_, at) => [`${at}`, '"a":"b"']));
      return readJson(Buffer.from(JSON.stringify([object, ...new Array(3000).fill('a')])), {
        ...roomy,
        keys: 1000,
      });
    };
    assert.ok('value' in readHolding(1000));
    assert.deepEqual(readHolding(1001), new Failure('The body holds more than 1000 keys; send less.'));
  });

  test('limits keys with escapes to 20,000 and 4 MiB, and does not limit texts with escapes', () => {
    const refusal = new Failure(
      'The body holds more than 20000 keys, or 4194304 bytes of keys, with escapes; write keys without escapes.',
    );
    const list = (part: string, count: number): string => `[${new Array(count).fill(part).join()}]`;
    assert.ok('value' in read(list('{"\\u0061":1}', 20_000)));
    assert.deepEqual(read(list('{"\\u0061":1}', 20_001)), refusal);
    assert.deepEqual(read(`{"${'\\n'.repeat(2_100_000)}" : 1}`), refusal);
    assert.ok('value' in read(list('{"a":"\\u0061"}', 50_000)));
    assert.ok('value' in read(`{"a":"${'\\n'.repeat(600_000)}"}`));
  });

  test('limits numbers of more than 25 characters to 10,000, without counting digits in texts', () => {
    const longest = `-${'1'.repeat(24)}`;
    const list = (element: string, count: number): string => `[${new Array(count).fill(element).join()}]`;
    for (const [shape, long] of Object.entries({
      bare: `${longest}0`,
      'with an exponent': '1.123456789012345678901e-10',
      'in arrays': `[ ${longest}5 ]`,
      'in objects': `{"a": ${longest}.5}`,
      'after keys with escapes': `{"a":"\\n","b":${longest}0}`,
    })) {
      assert.ok('value' in read(list(long, 10_000)), shape);
      assertRefused(
        list(long, 10_001),
        /^The body holds more than 10000 numbers that are longer than 25 characters; round them\.$/,
      );
    }
    for (const short of [
      longest,
      `"${longest}00"`,
      `"\\n${longest}00"`,
      `${' '.repeat(30)}1${' '.repeat(30)}`,
    ]) {
      assert.ok('value' in read(list(short, 20_000)), short);
    }
  });

  test('reports the position of an error in the original body, also after keys with escapes', () => {
    for (const text of ['{"\\u0061\\u0062":1 "b":1}', '{"\\u00e9é":1,\n"\\n":"\\n" 2}']) {
      assert.throws(
        () => JSON.parse(text),
        ({ message }: SyntaxError) =>
          /position \d+/.test(message) &&
          (read(text) as Failure).reason === `The body is not valid JSON: ${message}.`,
      );
    }
    for (const text of ['{"\\x":1}', '{"a\\', '{"a\\":1', '{"x"\\u003a":"}', '{"\\u12":1}']) {
      assert.match((read(text) as Failure).reason, /^The body is not valid JSON/, text);
    }
  });

  const slow = {
    'a text of escapes': `{"records":[{"name":"${'\\n'.repeat(4_000_000)}"}]}`,
    'a key of escapes': `{"records":[{"${'\\n'.repeat(4_000_000)}":1}]}`,
    'blanks before a colon': `{"records":[{"a\\n"${' '.repeat(8_000_000)}:1}]}`,
    'many keys with escapes': `{"records":[{${Array.from({ length: 190_000 }, (_, at) => `"\\u0061${at}":""`)}}]}`,
    'many texts with blanks': `{"records":[${new Array(50_000).fill(`"\\n"${' '.repeat(140)}`)}]}`,
  };
  for (const [what, text] of Object.entries(slow)) {
    test(`reads 8 MB of ${what} in less than 250 ms of CPU time`, () => {
      const body = Buffer.from(text);
      const cpuMs = (work: () => unknown): number => {
        const before = process.threadCpuUsage();
        work();
        const { user, system } = process.threadCpuUsage(before);
        return (user + system) / 1000;
      };
      const readMs = Math.min(...[1, 2, 3].map(() => cpuMs(() => readJson(body, roomy))));
      assert.ok(readMs < 250, `reading took ${readMs.toFixed(0)} ms`);
    });
  }
});
