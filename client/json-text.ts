// Records that write themselves as JSON: for a program that has them as text already, and would take them apart only to
// have them put together again.

export const jsonText: unique symbol = Symbol('JSON text');

interface WritesItself {
  [jsonText](): string;
}

export function jsonTextOf(record: unknown): string {
  if (typeof record === 'object' && record !== null && jsonText in record) {
    return (record as WritesItself)[jsonText]();
  }
  // What JSON has no word for, such as undefined, is a record that the server refuses by its place.
  return JSON.stringify(record) ?? 'null';
}
