// GET /openapi.json.

import { JSON_TYPE } from '../refusals.ts';
import { unchanging } from '../unchanging.ts';
import type { ApiLimits } from './limits.ts';

/** The description is large and seldom asked for: it is loaded and made when it first is. */
export function getOpenApi(limits: ApiLimits): ReturnType<typeof unchanging> {
  return unchanging(async () => {
    const { openApiDocument } = await import('./document.ts');
    return { type: JSON_TYPE, text: JSON.stringify(openApiDocument(limits)) };
  });
}
