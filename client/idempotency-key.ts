// Creates and checks idempotency keys. If several requests have the same key, the server runs only the first one.

const KEY_BYTES = 16;
const visibleAscii = /^[\x21-\x7e]{1,255}$/;

/** Returns a unique key. It is not a UUID, because crypto.randomUUID is not available to pages loaded by plain HTTP. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Returns the key if the server accepts it, otherwise throws a TypeError. */
export function checkedIdempotencyKey(key: string): string {
  if (typeof key === 'string' && visibleAscii.test(key)) return key;
  throw new TypeError('idempotencyKey must be 1 to 255 visible ASCII characters');
}
