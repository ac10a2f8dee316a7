// Reads a request's body into memory, within the limit for one body and the limit for all bodies together. The ingest
// threads decompress and parse the body later.

import type { IncomingMessage } from 'node:http';
import type { OrganisationNumber } from '../../store/rows.ts';
import { pauseReading } from '../connections/connection-state.ts';
import { askForBody } from '../connections/expect-continue.ts';
import { chunksReceived, chunksTooSmall, hasTinyChunks, TINY_CHUNKS } from '../connections/tiny-chunks.ts';
import { requestTimedOut } from '../fixed-refusals.ts';
import type { Refusal } from '../refusals.ts';
import type { InFlight } from './in-flight-bytes.ts';
import { type BodyReader, CHUNK_COST_BYTES, READ_AT_ONCE_BYTES } from './reading-turns.ts';

export const contentEncodings = ['gzip', 'br', 'zstd'] as const;
export type ContentEncoding = (typeof contentEncodings)[number];

export interface Body {
  /**
   * The bytes of the body as it was received. A small body may be part of a larger buffer that is shared with other
   * data. Such a buffer must not be transferred to another thread.
   */
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly encoding: ContentEncoding | null;
}

export const notJson: Refusal = {
  refusal: 'unsupported_media_type',
  message: 'Send the body as JSON in UTF-8, with the header Content-Type: application/json.',
  headers: { Accept: 'application/json' },
};

/**
 * Returns the body's Content-Encoding, or null if the body is not compressed. Returns a refusal if the Content-Type or
 * the Content-Encoding is not supported.
 */
export function bodyEncoding(request: IncomingMessage): ContentEncoding | null | Refusal {
  const contentType = request.headers['content-type'];
  if (contentType === undefined || !isJson(contentType)) return notJson;
  const given = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  if (given === 'identity') return null;
  const encoding = contentEncodings.find((known) => known === given);
  return (
    encoding ?? {
      refusal: 'unsupported_media_type',
      message: `The body may be compressed with one of ${contentEncodings.join(', ')}, or not at all.`,
      headers: { 'Accept-Encoding': contentEncodings.join(', ') },
    }
  );
}

function isJson(contentType: string): boolean {
  if (contentType === 'application/json') return true;
  const [mediaType, ...parameters] = contentType.split(';').map((part) => part.trim().toLowerCase());
  if (mediaType !== 'application/json') return false;
  return parameters.every((parameter) => {
    const [name, value] = parameter.split('=').map((part) => part.trim());
    return name !== 'charset' || value?.replaceAll('"', '') === 'utf-8' || value === 'utf8';
  });
}

export function tooLarge(maxBytes: number): Refusal {
  return {
    refusal: 'content_too_large',
    message: `The body is larger than ${maxBytes} bytes (after decompression); send fewer records at once.`,
  };
}

/**
 * A chunk with fewer bytes is small. Every buffer takes a few hundred bytes of memory besides its content, so
 * `SMALL_CHUNKS_JOINED` small chunks in a row are joined into one buffer.
 */
const SMALL_CHUNK_BYTES = 1024;
const SMALL_CHUNKS_JOINED = 256;

/**
 * Resolves to the body's bytes, to a refusal, or to null if the client disconnected before the end of the body. The
 * returned bytes count in `inFlight` until the caller calls `inFlight.give`.
 */
export function readBytes(
  request: IncomingMessage,
  maxBytes: number,
  inFlight: InFlight,
  organisation: OrganisationNumber,
): Promise<Uint8Array<ArrayBuffer> | Refusal | null> {
  // If the client disconnected while its key was looked up, no event would settle the promise below.
  if (request.destroyed) return Promise.resolve(null);
  if (hasTinyChunks(request)) return Promise.resolve(chunksTooSmall);
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) {
    request.resume();
    return Promise.resolve(tooLarge(maxBytes));
  }
  askForBody(request);
  return new Promise((resolve) => {
    let chunks: Buffer[] = [];
    let smallInARow = 0;
    let length = 0;
    /** Null while the body is small, because a small body is read without a turn. */
    let reader: BodyReader | null = null;
    let isWaiting = false;
    let isOver = false;
    const end = (result: Uint8Array<ArrayBuffer> | Refusal | null): void => {
      isOver = true;
      chunks = [];
      const isWhole = result instanceof Uint8Array;
      if (!isWhole) {
        inFlight.give(organisation, length);
        // The rest of the body is read and discarded, because a client that is still sending would not read the
        // response. If the chunks are tiny, the rest is left unread instead, because every chunk costs time and memory.
        if (result === chunksTooSmall) request.pause();
        else request.resume();
      }
      inFlight.turns.end(reader, isWhole ? length : 0);
      resolve(result);
    };
    const costBytes = (): number => length + chunksReceived(request) * CHUNK_COST_BYTES;
    const readOn = (): void => {
      isWaiting = false;
      // Restarts the stall timeout, so that the time for which the client had to wait for its turn does not count.
      request.socket.setTimeout(request.socket.timeout ?? 0);
      request.resume();
      request.socket.resume();
    };
    const wait = (): void => {
      isWaiting = true;
      pauseReading(request);
    };
    const onData = (chunk: Buffer): void => {
      if (isOver) return;
      if (length + chunk.length > maxBytes) {
        end(tooLarge(maxBytes));
      } else if (!inFlight.take(organisation, chunk.length)) {
        end(tooMuchInFlight);
      } else {
        chunks.push(chunk);
        length += chunk.length;
        smallInARow = chunk.length < SMALL_CHUNK_BYTES ? smallInARow + 1 : 0;
        if (smallInARow === SMALL_CHUNKS_JOINED) {
          const small = chunks.splice(-SMALL_CHUNKS_JOINED);
          chunks.push(Buffer.concat(small));
          smallInARow = 0;
        }
        if (reader === null && costBytes() > READ_AT_ONCE_BYTES) {
          reader = { organisation, costBytes, readOn, wait };
          if (!inFlight.turns.begin(reader)) wait();
        }
      }
    };
    const onEnd = (): void => {
      if (!isOver) end(joined(chunks, length));
    };
    const onCut = (): void => {
      if (!isOver) end(null);
    };
    const onTinyChunks = (): void => {
      if (!isOver) end(chunksTooSmall);
    };
    const onStalled = (): void => {
      if (!isOver && !isWaiting) end(requestTimedOut);
    };
    request
      .on('data', onData)
      .on('end', onEnd)
      .on('close', onCut)
      .on('timeout', onStalled)
      .on(TINY_CHUNKS, onTinyChunks)
      .on('error', () => {});
  });
}

export const tooMuchInFlight: Refusal = {
  refusal: 'service_unavailable',
  message: 'Too much is being uploaded at the moment; nothing was stored, send it again shortly.',
  headers: { 'Retry-After': '1' },
};

function joined(chunks: readonly Buffer[], length: number): Uint8Array<ArrayBuffer> {
  if (chunks.length === 1) return chunks[0] as Uint8Array<ArrayBuffer>;
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
    release(chunk);
  }
  return bytes;
}

/**
 * Frees the memory of a chunk at once, if the chunk has its own buffer. Otherwise tens of megabytes of such buffers
 * would stay in memory until the garbage collector runs.
 */
function release({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
