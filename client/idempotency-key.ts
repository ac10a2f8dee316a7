// The keys under which the server carries a request out once, however often it comes.

const KEY_BYTES = 16;
const visibleAscii = /^[\x21-\x7e]{1,255}$/;

/** A key that no other request has. Not a UUID: pages that came by plain HTTP can make none. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** A caller's own key as the server takes it. */
export function checkedIdempotencyKey(key: string): string {
  if (typeof key === 'string' && visibleAscii.test(key)) return key;
  throw new TypeError('idempotencyKey must be 1 to 255 visible ASCII characters');
}
