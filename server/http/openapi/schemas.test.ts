import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newlyRequired, optional, required } from '@headgate/catalogue/declaration.ts';
import { text } from '@headgate/catalogue/kinds/text.ts';
import { sentSchema, shownSchema } from './schemas.ts';

type Properties = Record<string, { readonly type: unknown; readonly minLength?: number }>;

test('a field that became required later is required in uploads and nullable in responses', () => {
  const fields = { always: required(text), lately: newlyRequired(text), never: optional(text) };
  const sent = sentSchema('Thing', fields, {});
  const shown = shownSchema('Thing', fields, {});
  assert.deepEqual([sent.required, shown.required], [['always', 'lately'], Object.keys(fields)]);
  const [sentFields, shownFields] = [sent.properties as Properties, shown.properties as Properties];
  for (const field of [sentFields.always!, sentFields.lately!, shownFields.always!]) {
    assert.deepEqual([field.type, field.minLength], ['string', 1]);
  }
  assert.deepEqual(
    [shownFields.lately!.type, shownFields.lately!.minLength],
    [['string', 'null'], undefined],
  );
});
