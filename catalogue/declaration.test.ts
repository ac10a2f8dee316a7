import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newlyRequired, optional, required, type Sent, type Shown } from './declaration.ts';
import { text } from './kinds/text.ts';
import { shownFields } from './typescript.ts';

const fields = { always: required(text), lately: newlyRequired(text), never: optional(text) };

test('a field that became required later must be sent, and may be null in stored records', () => {
  const sent: Sent<typeof fields> = { always: 'a', lately: 'b' };
  const shown: Shown<typeof fields> = { always: 'a', lately: null, never: null };
  // @ts-expect-error: uploads must have the field
  const incomplete: Sent<typeof fields> = { always: 'a' };
  // @ts-expect-error: a field that was always required is never null
  const impossible: Shown<typeof fields> = { always: null, lately: null, never: null };
  assert.ok(sent && shown && incomplete && impossible);
  assert.deepEqual(shownFields(fields), [
    '  always: string;\n',
    '  lately: string | null;\n',
    '  never: string | null;\n',
  ]);
});
