// The choice of a response's format.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { acceptedType } from './header-values.ts';
import { CSV_TYPE, isRefusal, JSON_TYPE, NDJSON_TYPE } from './refusals.ts';

describe('the format of a response', () => {
  const offered = [JSON_TYPE, NDJSON_TYPE, CSV_TYPE];
  const chosen: readonly [accept: string | undefined, type: string][] = [
    [undefined, JSON_TYPE],
    ['', JSON_TYPE],
    ['*/*', JSON_TYPE],
    ['text/html, application/xhtml+xml, */*;q=0.8', JSON_TYPE],
    ['application/*', JSON_TYPE],
    ['text/*', CSV_TYPE],
    ['*/*, Text/CSV; charset=utf-8', CSV_TYPE],
    ['image/png, application/x-ndjson;q=0.5, text/csv', NDJSON_TYPE],
    ['text/csv;q=0, */*', JSON_TYPE],
    ['application/json; Q=0.000, */*', NDJSON_TYPE],
    ['text/csv; charset=utf-8; q=0.001', CSV_TYPE],
    ['*/*, application/*;q=0', CSV_TYPE],
    ['*/*;q=0, application/x-ndjson', NDJSON_TYPE],
  ];
  for (const [accept, type] of chosen) {
    test(`for ${accept === undefined ? 'no Accept header' : `Accept: ${accept}`} is ${type}`, () => {
      assert.equal(acceptedType(accept === undefined ? {} : { accept }, offered), type);
    });
  }

  for (const accept of ['application/parquet', 'text', 'text/html, image/*', 'text/csv;q=0', '*/*;q=0.0']) {
    test(`for Accept: ${accept} is refused, with the formats that there are`, () => {
      const refusal = acceptedType({ accept }, offered);
      assert.ok(isRefusal(refusal));
      assert.deepEqual(refusal, {
        refusal: 'not_acceptable',
        message:
          'The header Accept must name application/json, application/x-ndjson, or text/csv, or be left out.',
      });
    });
  }
});
