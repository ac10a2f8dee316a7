// Handles GET /openapi.json, GET /docs, and the requests for the page's style sheet and script.

import { readFile } from 'node:fs/promises';
import type { Describe } from '../api-description.ts';
import { staticContent } from '../cached-content.ts';
import { JSON_TYPE } from '../refusals.ts';

type Handler = ReturnType<typeof staticContent>;

/** Allows the page to load only files from this server, except for images in `data:` URLs. Inline code does not run. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

export function getOpenApi(describe: Describe): Handler {
  return staticContent(async () => ({ type: JSON_TYPE, text: (await describe()).openApi }));
}

export function getReference(describe: Describe): Handler {
  return staticContent(async () => ({ type: 'text/html; charset=utf-8', text: (await describe()).page }), {
    'Content-Security-Policy': contentSecurityPolicy,
  });
}

export function getReferenceStyle(): Handler {
  return asset(new URL('./reference.css', import.meta.url), 'text/css; charset=utf-8');
}

export function getReferenceScript(): Handler {
  return asset(new URL('./reference.js', import.meta.url), 'text/javascript; charset=utf-8');
}

function asset(file: URL, type: string): Handler {
  return staticContent(async () => ({ type, text: await readFile(file, 'utf8') }));
}
