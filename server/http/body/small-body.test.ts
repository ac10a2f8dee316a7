import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isSmall } from './small-body.ts';

function isSmallText(text: string): boolean {
  return isSmall(Buffer.from(text));
}

describe('a small body', () => {
  test('has at most 4 KiB and few records', () => {
    const record = {
      tag_id: '018f6d2e-9c4b-7a31-8f5e-2b6c0d4e7a19',
      name: 'x'.repeat(100),
      is_deleted: false,
    };
    assert.ok(isSmallText(JSON.stringify({ records: new Array(20).fill(record) })));
    assert.ok(isSmallText('{}'));
    assert.ok(isSmallText(' '.repeat(4096)));
    assert.ok(!isSmallText(' '.repeat(4097)));
  });

  test('does not have hundreds of records, however short they are', () => {
    for (const record of ['{}', '0', '""', '[]']) {
      const text = `{"records":[${new Array(1000).fill(record).join()}]}`;
      assert.ok(text.length <= 4096);
      assert.ok(!isSmallText(text), record);
    }
  });
});
