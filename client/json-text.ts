// Lets a record provide its own JSON, so that a program that has its records as text does not have to parse them.

export const jsonText: unique symbol = Symbol('JSON text');

interface WritesItself {
  [jsonText](): string;
}

export function jsonTextOf(record: unknown): string {
  if (typeof record === 'object' && record !== null && jsonText in record) {
    return (record as WritesItself)[jsonText]();
  }
  // A value without JSON, such as undefined, is sent as null, so that the server rejects it at its position.
  return JSON.stringify(record) ?? 'null';
}
