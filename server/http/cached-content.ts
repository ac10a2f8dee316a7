// Serves content that does not change while the process runs. The content is made at the first request and cached. A
// client that already has the content gets a 304.

import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { TLSSocket } from 'node:tls';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { createOnce } from '../create-once.ts';

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
/**
 * Allows browsers and proxies to cache the content, but they must ask the server each time whether it has changed. So a
 * new version is visible at once.
 */
const CACHE_CONTROL = 'public, no-cache';
/**
 * Over TLS, content is sent in pieces: TLS encrypts at once what it is given, so of a response that nobody reads, only one
 * piece takes memory. Without TLS, all responses share the content, and sending it as a whole is faster.
 */
const PIECE_BYTES = 16 * 1024;

export function staticContent(
  make: () => Content | Promise<Content>,
  headers: Readonly<Record<string, string>> = {},
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> {
  const kept = createOnce(() => keep(make));
  return async (request, reply) => {
    const { type, bytes, etag } = await kept();
    reply.headers({ ...headers, 'Cache-Control': CACHE_CONTROL, ETag: etag });
    if (hasIt(request.headers['if-none-match'], etag)) return reply.code(NOT_MODIFIED_STATUS).send();
    return reply
      .type(type)
      .header('Content-Length', bytes.length)
      .send(request.socket instanceof TLSSocket ? Readable.from(piecesOf(bytes)) : bytes);
  };
}

async function keep(make: () => Content | Promise<Content>): Promise<Kept> {
  const { type, text } = await make();
  const bytes = Buffer.from(text);
  const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, ETAG_CHARACTERS);
  return { type, bytes, etag: `"${hash}"` };
}

function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start < bytes.length; start += PIECE_BYTES)
    yield bytes.subarray(start, start + PIECE_BYTES);
}

/**
 * Returns whether the client already has the content. Weak ETags match too, because a proxy that compresses a response
 * makes its ETag weak.
 */
function hasIt(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.includes(etag) || ifNoneMatch.trim() === '*';
}
