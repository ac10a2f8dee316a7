// Decides which requests are small. They have their own ingest thread, so that they never wait for a large one.

/** Enough for an interaction, or an upload of about twenty records. */
export const SMALL_BODY_BYTES = 4 * 1024;
/**
 * Twenty records have fewer. Without this limit, 4 KiB of `{}` would be 1350 wrong records, which take 40 ms to report.
 */
const MOST_PARTS = 256;
const COMMA = 0x2c;
const OPENING_BRACE = 0x7b;

/** Returns whether a body is small. The bytes must not be compressed. */
export function isSmall(bytes: Uint8Array): boolean {
  if (bytes.byteLength > SMALL_BODY_BYTES) return false;
  let parts = 0;
  for (let at = 0; at < bytes.byteLength; at++) {
    if (bytes[at] === COMMA || bytes[at] === OPENING_BRACE) parts++;
  }
  return parts <= MOST_PARTS;
}
