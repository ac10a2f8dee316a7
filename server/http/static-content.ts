// Answers with content that stays the same as long as the process runs: made at the first request, kept, and sent
// again only to those who do not have it yet.

import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { createOnce } from './create-once.ts';

export interface Content {
  readonly type: string;
  readonly text: string;
}

interface Kept {
  readonly type: string;
  readonly bytes: Buffer;
  readonly etag: string;
}

const NOT_MODIFIED_STATUS = 304;
const ETAG_CHARACTERS = 27;
/** Kept by browsers and proxies, but asked for again each time: a new version shows at once. */
const CACHE_CONTROL = 'public, no-cache';

export function staticContent(
  make: () => Content | Promise<Content>,
  headers: Readonly<Record<string, string>> = {},
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> {
  const kept = createOnce(() => keep(make));
  return async (request, reply) => {
    const { type, bytes, etag } = await kept();
    reply.headers({ ...headers, 'Cache-Control': CACHE_CONTROL, ETag: etag });
    if (hasIt(request.headers['if-none-match'], etag)) return reply.code(NOT_MODIFIED_STATUS).send();
    return reply.type(type).send(bytes);
  };
}

async function keep(make: () => Content | Promise<Content>): Promise<Kept> {
  const { type, text } = await make();
  const bytes = Buffer.from(text);
  const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, ETAG_CHARACTERS);
  return { type, bytes, etag: `"${hash}"` };
}

/** Proxies that compress an answer mark its tag as weak; the content is the same. */
function hasIt(ifNoneMatch: string | undefined, etag: string): boolean {
  const known = (ifNoneMatch ?? '').split(',').map((entry) => entry.trim().replace(/^W\//, ''));
  return known.includes(etag) || known.includes('*');
}
