// Decides which requests are small. Small requests have their own ingest thread, so that they never wait for a large
// request.

/** The largest size of a small body. It is enough for an interaction, or for an upload of about twenty records. */
export const SMALL_BODY_BYTES = 4 * 1024;
/**
 * The most commas and opening braces in a small body. Twenty records have fewer. Without this limit, 4 KiB of `{}`
 * would be 1350 invalid records, and it takes 40 ms to report their errors.
 */
const MOST_PARTS = 256;
const COMMA = 0x2c;
const OPENING_BRACE = 0x7b;

/** Returns whether a body is small. `bytes` is the body after decompression. */
export function isSmall(bytes: Uint8Array): boolean {
  if (bytes.byteLength > SMALL_BODY_BYTES) return false;
  let parts = 0;
  for (let at = 0; at < bytes.byteLength; at++) {
    if (bytes[at] === COMMA || bytes[at] === OPENING_BRACE) parts++;
  }
  return parts <= MOST_PARTS;
}
