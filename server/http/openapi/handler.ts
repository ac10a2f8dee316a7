// GET /openapi.json.

import type { Describe } from '../description.ts';
import { JSON_TYPE } from '../refusals.ts';
import { unchanging } from '../unchanging.ts';

export function getOpenApi(describe: Describe): ReturnType<typeof unchanging> {
  return unchanging(async () => ({ type: JSON_TYPE, text: (await describe()).openApi }));
}
