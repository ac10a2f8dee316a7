// Packs UUIDs into 16 bytes each, one after the other.

export const ID_BYTES = 16;

export function packIds(ids: readonly string[]): Buffer<ArrayBuffer> {
  return Buffer.from(ids.join('').replaceAll('-', ''), 'hex');
}

export function unpackIds(packed: Uint8Array): readonly string[] {
  const hex = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength).toString('hex');
  const ids: string[] = [];
  for (let at = 0; at < hex.length; at += 2 * ID_BYTES) {
    ids.push(
      `${hex.slice(at, at + 8)}-${hex.slice(at + 8, at + 12)}-${hex.slice(at + 12, at + 16)}-` +
        `${hex.slice(at + 16, at + 20)}-${hex.slice(at + 20, at + 32)}`,
    );
  }
  return ids;
}
