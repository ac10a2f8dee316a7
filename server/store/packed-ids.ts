// Packs UUIDs into 16 bytes each, one after the other.

export const ID_BYTES = 16;
const ID_CHARACTERS = 36;
const DASH = '-'.charCodeAt(0);
const digits = Buffer.from('0123456789abcdef');
/** The value of each hexadecimal digit, by its character code. */
const digitValues = new Uint8Array(128);
for (const [value, digit] of digits.entries()) digitValues[digit] = value;

/** The ids must be in lower case. */
export function packIds(ids: readonly string[]): Buffer<ArrayBuffer> {
  const text = Buffer.from(ids.join(''), 'latin1');
  const packed = Buffer.allocUnsafeSlow(ids.length * ID_BYTES);
  let next = 0;
  for (let at = 0; at < text.length; ) {
    if (text[at] === DASH) at++;
    packed[next++] = (digitValues[text[at]!]! << 4) | digitValues[text[at + 1]!]!;
    at += 2;
  }
  return packed;
}

export function unpackIds(packed: Uint8Array): readonly string[] {
  const text = Buffer.allocUnsafe((packed.length / ID_BYTES) * ID_CHARACTERS);
  let next = 0;
  for (let at = 0; at < packed.length; at++) {
    const place = at % ID_BYTES;
    if (place === 4 || place === 6 || place === 8 || place === 10) text[next++] = DASH;
    text[next++] = digits[packed[at]! >> 4]!;
    text[next++] = digits[packed[at]! & 0xf]!;
  }
  const joined = text.toString('latin1');
  const ids: string[] = [];
  for (let at = 0; at < joined.length; at += ID_CHARACTERS) ids.push(joined.slice(at, at + ID_CHARACTERS));
  return ids;
}
