// Handles GET /openapi.json.

import type { Describe } from '../description.ts';
import { JSON_TYPE } from '../refusals.ts';
import { staticContent } from '../static-content.ts';

export function getOpenApi(describe: Describe): ReturnType<typeof staticContent> {
  return staticContent(async () => ({ type: JSON_TYPE, text: (await describe()).openApi }));
}
