// The readers return the same records and places, however the bytes of a file are split into pieces.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { interaction, recordTypes } from '@headgate/catalogue/record-types.ts';
import { jsonTextOf } from '@headgate/client/slices.ts';
import fc from 'fast-check';
import { times } from '../../store/test-thoroughness.ts';
import { csvLine } from '../csv-lines.ts';
import { CsvReader, columnsOf, readHeader } from './csv.ts';
import { passOver } from './feed.ts';
import { jsonAsLines } from './json-lines.ts';
import { type LineReader, LONGEST_RECORD_BYTES } from './line-reader.ts';
import { LONGEST_REJECTED_BYTES, NdjsonReader } from './ndjson.ts';
import { type Source, Unreadable } from './source.ts';

function inPieces(bytes: Buffer, pieceBytes: number): Source {
  let at = 0;
  return {
    next: async () => {
      if (at >= bytes.length) return null;
      at += pieceBytes;
      return bytes.subarray(at - pieceBytes, at);
    },
    readBytes: () => at,
    close: () => {},
  };
}

interface ReadAll {
  readonly records: unknown[];
  readonly lines: number[];
  readonly ends: number[];
  readonly broken: { readonly reason: string; readonly line: number | null } | null;
}

async function readAll(reader: LineReader, start = 0): Promise<ReadAll> {
  const all: ReadAll = { records: [], lines: [], ends: [], broken: null };
  let offset: number | null = null;
  let broken: Unreadable | null = null;
  for (let chunk = await reader.next(); chunk !== null; chunk = await reader.next()) {
    assert.equal(broken, null, 'nothing comes after a broken line');
    if (offset !== null) assert.equal(chunk.start, offset, 'chunks follow each other without a gap');
    else assert.ok(chunk.start - start <= 3, 'only a byte-order mark is skipped');
    offset = chunk.start + chunk.bytes.length;
    assert.ok(chunk.ends.every((end) => end <= offset!));
    // Records may be objects with their own toJSON.
    all.records.push(...(JSON.parse(JSON.stringify(chunk.records)) as unknown[]));
    all.lines.push(...chunk.lines);
    all.ends.push(...chunk.ends);
    broken = chunk.broken;
  }
  return { ...all, broken: broken === null ? null : { reason: broken.reason, line: broken.line } };
}

const pieceSizes = [1, 2, 3, 7, 64, 1_000_000];
const { fields } = recordTypes.branches;

async function csv(text: string | Buffer, pieceBytes: number): Promise<ReadAll> {
  const bytes = Buffer.from(text as string);
  const header = await readHeader(inPieces(bytes, pieceBytes));
  if (header instanceof Unreadable) assert.fail(header.reason);
  const { names, place } = header;
  const rest = inPieces(bytes.subarray(place.offset), pieceBytes);
  return readAll(new CsvReader(rest, place, columnsOf(names, fields), null), place.offset);
}

async function csvInAnyPieces(text: string | Buffer): Promise<ReadAll> {
  const results = await Promise.all(pieceSizes.map((pieceBytes) => csv(text, pieceBytes)));
  for (const result of results) assert.deepEqual(result, results[0]);
  return results[0]!;
}

test('CSV cells get their types from the catalogue, and empty cells are absent', async () => {
  const { records, lines, broken } = await csvInAnyPieces(
    'branch_id,name,latitude,longitude,is_deleted,created\n' +
      'b1,Shop,51.5,-0.12,TRUE,2024-05-01T09:30:00Z\n' +
      'b2,,,abc,no,\n' +
      'b3,7,+1,.5e1,False,x\n' +
      'b4,"","",1e999,"",""\n',
  );
  assert.equal(broken, null);
  assert.deepEqual(records, [
    {
      branch_id: 'b1',
      name: 'Shop',
      latitude: 51.5,
      longitude: -0.12,
      is_deleted: true,
      created: '2024-05-01T09:30:00Z',
    },
    { branch_id: 'b2', longitude: 'abc', is_deleted: 'no' },
    { branch_id: 'b3', name: '7', latitude: 1, longitude: 5, is_deleted: false, created: 'x' },
    { branch_id: 'b4', name: '', longitude: '1e999' },
  ]);
  assert.deepEqual(lines, [2, 3, 4, 5]);
});

test('CSV may have quotes, multi-line cells, CRLF, a byte-order mark and blank lines', async () => {
  const text =
    '\ufeffname,"branch_id"\r\n"a, ""b"" – ü\r\n2nd",1\r\n\r\nplain 5" pipe,"2"\r\n\r\n"q","3"\n"","4"\n,5\nlast,🎓';
  const { records, lines, ends, broken } = await csvInAnyPieces(text);
  assert.equal(broken, null);
  assert.deepEqual(records, [
    { name: 'a, "b" – ü\r\n2nd', branch_id: '1' },
    { name: 'plain 5" pipe', branch_id: '2' },
    { name: 'q', branch_id: '3' },
    { name: '', branch_id: '4' },
    { branch_id: '5' },
    { name: 'last', branch_id: '🎓' },
  ]);
  assert.deepEqual(lines, [2, 5, 7, 8, 9, 10]);
  assert.equal(ends.at(-1), Buffer.byteLength(text));
});

test('an invalid CSV line is reported with its number, and all records before it are read', async () => {
  const good = 'branch_id,name\n1,a\n2,b\n';
  const broken: [text: string | Buffer, line: number, reason: RegExp][] = [
    [`${good}3\n4,d\n`, 4, /has 1 cell, and the header 2/],
    [`${good}3,c,x\n4,d\n`, 4, /has 3 cells, and the header 2/],
    [`${good}\n3,"c\n4,d\n`, 5, /opened here is never closed/],
    [`${good}3,"c"d\n4,d\n`, 4, /followed by "d"/],
    [`${good}"x\ny","c\n4,d"e`, 5, /followed by "e"/],
    [Buffer.concat([Buffer.from(`${good}ü`), Buffer.from([0xff]), Buffer.from(',c\n4,d\n')]), 4, /not UTF-8/],
    [Buffer.concat([Buffer.from(good), Buffer.from('3,\xe9', 'latin1')]), 4, /not UTF-8/],
  ];
  for (const [text, line, reason] of broken) {
    const read = await csvInAnyPieces(text);
    assert.deepEqual(read.records.slice(0, 2), [
      { branch_id: '1', name: 'a' },
      { branch_id: '2', name: 'b' },
    ]);
    assert.equal(read.records.length, 2, String(text));
    assert.equal(read.ends[1], good.length);
    assert.match(read.broken!.reason, reason);
    assert.equal(read.broken!.line, line, String(text));
  }
});

test('an NDJSON line of a rejected record may be longer than other lines', async () => {
  const long = 'x'.repeat(LONGEST_RECORD_BYTES + 600_000);
  const read = (line: string, pieceBytes = 256 * 1024) =>
    readAll(new NdjsonReader(inPieces(Buffer.from(line), pieceBytes), { offset: 0, line: 1 }));
  const rejected = await read(
    `${JSON.stringify({ record: { a: long }, errors: [], file: 'a.csv', line: 2 })}\n5\n`,
  );
  assert.deepEqual([rejected.records.length, rejected.broken], [2, null]);
  const other = await read(`${JSON.stringify({ a: long })}\n5\n`);
  assert.deepEqual([other.records.length, other.broken!.line], [0, 1]);
  const endless = await read(`{"record":"${'x'.repeat(LONGEST_REJECTED_BYTES)}`, 4 * 1024 * 1024);
  assert.match(endless.broken!.reason, /longer than 56 MiB/);
});

test('a long line is read in linear time, however many pieces it comes in', async () => {
  const line = Buffer.from(`{"record":"${'x'.repeat(LONGEST_RECORD_BYTES)}","errors":[]}`);
  /** Returns the CPU time, because a busy machine adds to the elapsed time. */
  const readMs = async (pieceBytes: number): Promise<number> => {
    const reader = new NdjsonReader(inPieces(line, pieceBytes), { offset: 0, line: 1 });
    const before = process.cpuUsage();
    const { records, broken } = await readAll(reader);
    assert.deepEqual([records.length, broken], [1, null]);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  const wholeMs = await readMs(line.length);
  const piecesMs = await readMs(4 * 1024);
  assert.ok(piecesMs < 10 * wholeMs + 200, `${piecesMs} ms in pieces, ${wholeMs} ms at once`);
});

test('a record or file that never ends is refused after a limited number of bytes', async () => {
  const endless = 'x'.repeat(LONGEST_RECORD_BYTES + 300_000);
  const openQuote = await csv(`branch_id,name\n1,a\n2,"${endless.replaceAll('xxx', 'x,\n')}`, 256 * 1024);
  assert.deepEqual([openQuote.records.length, openQuote.broken!.line], [1, 3]);
  assert.match(openQuote.broken!.reason, /longer than 8 MiB; is a closing quote missing/);
  const oneLine = await readAll(
    new NdjsonReader(inPieces(Buffer.from(`{}\n"${endless}`), 256 * 1024), { offset: 0, line: 1 }),
  );
  assert.deepEqual([oneLine.records.length, oneLine.broken!.line], [1, 2]);
  const endlessArray: Source = {
    ...inPieces(Buffer.alloc(0), 1),
    next: async () => Buffer.alloc(2 ** 20, '['),
  };
  const tooLong = await readAll(
    new NdjsonReader(jsonAsLines(endlessArray, 'records'), { offset: 0, line: 1 }),
  );
  assert.match(tooLong.broken!.reason, /longer than 32 MiB.* NDJSON.*: jq -c '\.\[\]' .*'\.records\[\]'/);
});

test('any written CSV is read back unchanged, and reading can resume after any record', async () => {
  const cell = fc.oneof(
    fc.constant(null),
    fc.string({ unit: 'binary', maxLength: 20 }).map((text) => text.toWellFormed()),
    fc.string({ unit: fc.constantFrom('"', ',', '\n', '\r', 'a', 'é', '🎓') }),
  );
  const row = fc.record({ branch_id: fc.constant('b'), name: cell, gender: cell, discount_name: cell });
  await fc.assert(
    fc.asyncProperty(
      fc.array(row, { maxLength: 20 }),
      fc.integer({ min: 1, max: 50 }),
      async (rows, pieceBytes) => {
        const { branches, customers, transactions } = recordTypes;
        const fields = { ...transactions.fields, ...customers.fields, ...branches.fields };
        const columns = columnsOf(['branch_id', 'name', 'gender', 'discount_name'], fields);
        const text = rows.map(({ branch_id, name, gender, discount_name }) =>
          csvLine([branch_id, name, gender, discount_name]),
        );
        const bytes = Buffer.from(text.join(''));
        const expected = rows.map((given) =>
          Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null)),
        );
        // A byte-order mark is skipped only at the start of a file, so reading begins after the header.
        const place = { offset: 10, line: 2 };
        const whole = await readAll(new CsvReader(inPieces(bytes, pieceBytes), place, columns, null), 10);
        assert.deepEqual(whole.records, expected);
        assert.equal(whole.broken, null);
        for (const [index, end] of whole.ends.entries()) {
          const done = bytes.subarray(0, end - 10);
          const line = 2 + done.filter((byte) => byte === 0x0a).length;
          const rest = new CsvReader(
            inPieces(bytes.subarray(end - 10), pieceBytes),
            { offset: end, line },
            columns,
            null,
          );
          const { records, lines } = await readAll(rest, end);
          assert.deepEqual(records, expected.slice(index + 1));
          assert.deepEqual(lines, whole.lines.slice(index + 1));
        }
      },
    ),
    { numRuns: times(100, 30) },
  );
});

test('the JSON text of a CSV record is equivalent to the JSON of its values', async () => {
  const { fields } = recordTypes.transactions;
  const columns = columnsOf(['transaction_id', 'amount', 'is_deleted', 'source', 'event', 'no_field'], {
    ...fields,
    event: interaction.event_timestamp,
  });
  const digits = fc.string({ unit: fc.constantFrom('0', '1', '9', '.', '-', '+', 'e', 'E'), maxLength: 8 });
  const cell = fc.oneof(
    fc.constant(''),
    fc.double().map(String),
    digits,
    fc.constantFrom('true', 'false', 'TRUE', 'yes', '1700000000', '-0', '1e999', 'Infinity'),
    fc.string({ unit: fc.constantFrom('\\', '\t', '\u0001', 'a', 'é', '🎓', ' ', '\u2028'), maxLength: 5 }),
  );
  await fc.assert(
    fc.asyncProperty(fc.tuple(fc.constant('id'), cell, cell, cell, cell, cell), async (cells) => {
      const line = Buffer.from(`${cells.join(',')}\n`);
      const chunk = await new CsvReader(
        inPieces(line, 100),
        { offset: 10, line: 2 },
        columns,
        'transaction_id',
      ).next();
      const [record] = chunk!.records;
      // The text is normalised first: 12.50 is the same number as 12.5, and is sent as written.
      assert.equal(JSON.stringify(JSON.parse(jsonTextOf(record))), JSON.stringify(record));
    }),
    {
      numRuns: times(1000, 300),
      examples: ['0.0', '12.50', '-1.0', '00', '-0.0', '999999999999999.999999999999999'].map((number) => [
        ['id', number, '', '', '', ''],
      ]),
    },
  );
});

test('a column of CSV may have any name, and only the key is a property of the record', async () => {
  const names = ['branch_id', 'cell', 'toJSON', 'constructor', '__proto__', 'text', 'then'];
  for (const row of ['b1,1,2,3,4,5,6', 'b1,"1","2","3","4","5","6"']) {
    const columns = columnsOf(names, fields);
    const line = Buffer.from(`${row}\n`);
    const chunk = await new CsvReader(
      inPieces(line, 100),
      { offset: 10, line: 2 },
      columns,
      'branch_id',
    ).next();
    const record = chunk!.records[0] as { branch_id: string };
    const json =
      '{"branch_id":"b1","cell":"1","toJSON":"2","constructor":"3","__proto__":"4","text":"5","then":"6"}';
    assert.equal(jsonTextOf(record), json);
    assert.equal(JSON.stringify(record), json);
    assert.equal(record.branch_id, 'b1');
  }
});

async function ndjsonInAnyPieces(text: string | Buffer): Promise<ReadAll> {
  const read = (pieceBytes: number) =>
    readAll(new NdjsonReader(inPieces(Buffer.from(text as string), pieceBytes), { offset: 0, line: 1 }));
  const results = await Promise.all(pieceSizes.map(read));
  for (const result of results) assert.deepEqual(result, results[0]);
  return results[0]!;
}

test('NDJSON has one value per line, and an invalid line is reported with its number', async () => {
  const good = '\ufeff{"a":"ü"}\r\n\n   \n5\n["x"]';
  const { records, lines, ends, broken } = await ndjsonInAnyPieces(good);
  assert.deepEqual([records, lines, broken], [[{ a: 'ü' }, 5, ['x']], [1, 4, 5], null]);
  assert.equal(ends.at(-1), Buffer.byteLength(good));
  const cut = await ndjsonInAnyPieces('{"a":1}\n{"a":2\n{"a":3}\n');
  assert.deepEqual([cut.records, cut.broken!.line], [[{ a: 1 }], 2]);
  assert.match(cut.broken!.reason, /not JSON: .*; it begins with \{"a":2/);
  const notUtf8 = await ndjsonInAnyPieces(Buffer.from('{"a":1}\n{"a":"\xe9"}\n', 'latin1'));
  assert.deepEqual([notUtf8.records, notUtf8.broken!.line], [[{ a: 1 }], 2]);
});

async function jsonInAnyPieces(text: string | Buffer): Promise<ReadAll> {
  const read = (pieceBytes: number) => {
    const source = jsonAsLines(inPieces(Buffer.from(text as string), pieceBytes), 'records');
    return readAll(new NdjsonReader(source, { offset: 0, line: 1 }));
  };
  const results = await Promise.all(pieceSizes.map(read));
  for (const result of results) assert.deepEqual(result, results[0]);
  return results[0]!;
}

test('a JSON file is an array of records, alone or in an object, and lines are record numbers', async () => {
  const records = [{ a: '],"\\\\\\"{', b: [1, [2]] }, { c: 'ü\n' }, 5, 'x', null, [[]], {}];
  for (const text of [
    JSON.stringify(records),
    `\ufeff \n${JSON.stringify(records, null, 2)}\n`,
    JSON.stringify({ type: 'shops', records, next_cursor: null }),
    JSON.stringify({
      records,
      more: { records: [1] },
      a: 'records',
      '"': '\\',
      b: [['records', {}]],
      c: 1,
      d: null,
    }),
    JSON.stringify({ more: { records: [1] }, list: [{ records: [2] }], a: 'records', records }, null, 1),
  ]) {
    const read = await jsonInAnyPieces(text);
    assert.deepEqual([read.records, read.broken, read.lines], [records, null, [1, 2, 3, 4, 5, 6, 7]], text);
  }
  assert.deepEqual((await jsonInAnyPieces('[]')).records, []);
  assert.deepEqual((await jsonInAnyPieces('{"records": [ ] }')).records, []);
});

test('an invalid JSON file is reported with its line, and no record of it is read', async () => {
  const broken: [text: string | Buffer, line: number | null, reason: RegExp][] = [
    ['[{"a":1},\n{"a":2}', 2, /not valid JSON/],
    ['[{"a":1},\n{"a":}]', null, /not valid JSON: Unexpected token '}', .*\{"a":1\}, \{"a":\}\]"/],
    ['[{"a":1}\n{"a":2}]', 2, /not valid JSON/],
    ['[{"a":1},\n]', null, /not valid JSON: Unexpected token '\]'/],
    ['[{"a":1}]\n[{"a":2}]', 2, /not valid JSON: Unexpected non-whitespace character after JSON/],
    ['{"records":[{"a":1}]}\n{"records":[{"a":2}]}', 2, /character after JSON/],
    ['{"records":[{"a":1}],\n"records":[{"a":2}]}', null, /the key "records" twice/],
    ['{"records":[{"a":1}],\n"rec\\u006frds" :[{"a":2}]}', null, /the key "records" twice/],
    ['{"records":[{"a":1}],\n"x":[1}}', 2, /not valid JSON/],
    ['{"records":[{"a":1}]\n', 2, /not valid JSON/],
    ['', null, /empty/],
    ['{"a":1}\n{"a":2}\n', 2, /name ends in \.ndjson/],
    ['{"data":[{"a":1}]}', null, /under "records"/],
    ['"records"', null, /neither an array/],
    ['null', null, /neither an array/],
    [' \n', null, /Unexpected end of JSON input/],
    ['shop_id,name\n', null, /not valid JSON/],
    [Buffer.from('[{"a":1},{"a":"\xe9"}]', 'latin1'), null, /not valid UTF-8/],
  ];
  for (const [text, line, reason] of broken) {
    const read = await jsonInAnyPieces(text);
    assert.deepEqual([read.records.length, read.broken!.line], [0, line], String(text));
    assert.match(read.broken!.reason, reason);
  }
});

test('reading a JSON file can resume after any record', async () => {
  const text = '{"records":[{"a":"é"} ,\n {"b":[1,2]},3\n],"more":"]"}';
  const { records, lines, ends } = await jsonInAnyPieces(text);
  assert.equal(records.length, 3);
  for (const [index, end] of ends.entries()) {
    const passed = await passOver(jsonAsLines(inPieces(Buffer.from(text), 5), 'records'), end, null);
    if (passed === null || passed instanceof Unreadable) assert.fail('the records cannot be skipped');
    const rest = await readAll(new NdjsonReader(passed.rest, passed.place), end);
    assert.deepEqual([rest.records, rest.lines], [records.slice(index + 1), lines.slice(index + 1)]);
  }
});
