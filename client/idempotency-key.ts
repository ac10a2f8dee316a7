const KEY_BYTES = 16;

/** A key that no other request has. Not a UUID: pages that came by plain HTTP can make none. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
