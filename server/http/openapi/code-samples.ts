// Makes code samples for a request, with curl and in TypeScript. The samples read the server's address and the API key
// from the environment variables HEADGATE_URL and HEADGATE_KEY.

import type { CodeSample } from './document-shape.ts';

/** Returns the samples for a request. The second is for the client, if `lines` use it. */
export function codeSamples(curl: string, lines?: string): readonly CodeSample[] {
  const shell = { lang: 'Shell', label: 'curl', source: curl };
  if (lines === undefined) return [shell];
  return [shell, { lang: 'TypeScript', label: 'TypeScript', source: typescriptOf(lines) }];
}

/** Returns the command for a path with its query. */
export function curlOf(path: string, needsKey: boolean, body?: unknown, method?: string): string {
  const options = [
    ...(method === undefined ? [] : [`-X ${method}`]),
    ...(needsKey ? ['-H "Authorization: Bearer $HEADGATE_KEY"'] : []),
    ...(body === undefined
      ? []
      : ["-H 'Content-Type: application/json'", `-d '${shellQuoted(JSON.stringify(body, null, 2))}'`]),
  ];
  return [`curl "$HEADGATE_URL${path}"`, ...options].join(' \\\n  ');
}

function shellQuoted(text: string): string {
  return text.replaceAll("'", "'\\''");
}

function typescriptOf(lines: string): string {
  return `import { HeadgateClient } from '@headgate/client';

const client = new HeadgateClient({
  url: process.env.HEADGATE_URL!,
  apiKey: process.env.HEADGATE_KEY!,
});

${lines}`;
}

/** Returns a JSON value as TypeScript code in the usual style: single quotes, and keys without quotes. */
export function literal(value: unknown, indent = ''): string {
  if (typeof value === 'string') return `'${JSON.stringify(value).slice(1, -1).replaceAll("'", "\\'")}'`;
  if (value === null || typeof value !== 'object') return String(value);
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    return `[\n${value.map((item) => `${inner}${literal(item, inner)},\n`).join('')}${indent}]`;
  }
  const entries = Object.entries(value).map(([name, item]) => `${inner}${name}: ${literal(item, inner)},\n`);
  return `{\n${entries.join('')}${indent}}`;
}
