// Handles GET /openapi.json.

import type { Describe } from '../api-description.ts';
import { staticContent } from '../cached-content.ts';
import { JSON_TYPE } from '../refusals.ts';

export function getOpenApi(describe: Describe): ReturnType<typeof staticContent> {
  return staticContent(async () => ({ type: JSON_TYPE, text: (await describe()).openApi }));
}
