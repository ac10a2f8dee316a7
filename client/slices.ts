// Cuts an input of any length into slices that each fit into one request. The slicer keeps only the current slice in
// memory.

/** A record may have a method of this name that returns its JSON, if a program has its records as text. */
export const jsonText: unique symbol = Symbol('JSON text');

export function jsonTextOf(record: unknown): string {
  if (typeof record === 'object' && record !== null && jsonText in record) {
    return (record as { [jsonText](): string })[jsonText]();
  }
  // A value that JSON cannot express, such as undefined, is sent as null, so that the server rejects it at its position.
  return JSON.stringify(record) ?? 'null';
}

/** Consecutive records of the input with their JSON. */
export class Slice<Item> {
  readonly firstIndex: number;
  readonly records: readonly Item[];
  /** The body of a request with all records. */
  #body: Uint8Array<ArrayBuffer>;
  /** The offset of each record in the body, and the offset after the last record and its comma. */
  readonly #starts: readonly number[];

  constructor(
    firstIndex: number,
    records: readonly Item[],
    body: Uint8Array<ArrayBuffer>,
    starts: readonly number[],
  ) {
    this.firstIndex = firstIndex;
    this.records = records;
    this.#body = body;
    this.#starts = starts;
  }

  /** Returns the body of a request with the records at these positions of the slice. */
  bodyOf(positions: readonly number[]): Uint8Array<ArrayBuffer> {
    if (positions.length === this.records.length) return this.#body;
    const body = new BodyWriter(this.#body.length);
    for (const position of positions) {
      body.addBytes(this.#body.subarray(this.#starts[position]!, this.#starts[position + 1]! - 1));
    }
    return body.end();
  }

  /** Frees the body after the last request. The records stay in memory until all earlier slices are settled. */
  release(): void {
    this.#body = new Uint8Array(0);
  }
}

const encoder = new TextEncoder();
const OPENING = encoder.encode('{"records":[');
const CLOSING = encoder.encode(']}');
const COMMA = 0x2c;
const FIRST_CAPACITY_BYTES = 64 * 1024;
/** The maximum number of UTF-8 bytes for one UTF-16 unit. */
const MOST_BYTES_PER_UNIT = 3;

class BodyWriter {
  #bytes: Uint8Array<ArrayBuffer>;
  #length = OPENING.length;
  readonly starts: number[] = [OPENING.length];

  constructor(capacityBytes: number) {
    this.#bytes = new Uint8Array(Math.max(capacityBytes, OPENING.length + CLOSING.length));
    this.#bytes.set(OPENING);
  }

  get count(): number {
    return this.starts.length - 1;
  }

  /** The length of the whole body in bytes. */
  get length(): number {
    return this.#length + CLOSING.length - (this.count === 0 ? 0 : 1);
  }

  addText(json: string): void {
    this.#makeRoom(json.length);
    const { read, written } = encoder.encodeInto(json, this.#bytes.subarray(this.#length));
    this.#length += written;
    if (read < json.length) {
      const rest = json.slice(read);
      this.#makeRoom(rest.length * MOST_BYTES_PER_UNIT);
      this.#length += encoder.encodeInto(rest, this.#bytes.subarray(this.#length)).written;
    }
    this.#endRecord();
  }

  addBytes(json: Uint8Array): void {
    this.#makeRoom(json.length);
    this.#bytes.set(json, this.#length);
    this.#length += json.length;
    this.#endRecord();
  }

  /** Removes the last record and returns its JSON. */
  takeLast(): Uint8Array<ArrayBuffer> {
    const end = this.#length - 1;
    this.starts.pop();
    this.#length = this.starts.at(-1)!;
    return this.#bytes.slice(this.#length, end);
  }

  end(): Uint8Array<ArrayBuffer> {
    const length = this.length;
    this.#makeRoom(CLOSING.length);
    this.#bytes.set(CLOSING, length - CLOSING.length);
    return this.#bytes.subarray(0, length);
  }

  /** Writes a comma after the record. The closing bracket overwrites the last comma. */
  #endRecord(): void {
    this.#bytes[this.#length++] = COMMA;
    this.starts.push(this.#length);
  }

  #makeRoom(bytes: number): void {
    const needed = this.#length + bytes + CLOSING.length;
    if (needed <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}

/** The maximum number of records and bytes in a slice. Both limits may shrink during the upload. */
export interface SliceLimits {
  readonly records: number;
  readonly bytes: number;
}

export class Slicer<Item> {
  readonly #iterator: Iterator<Item> | AsyncIterator<Item>;
  readonly #limits: SliceLimits;
  readonly #textOf: (record: Item) => string;
  #index = 0;
  #capacityBytes = FIRST_CAPACITY_BYTES;
  #carried: { readonly record: Item; readonly json: Uint8Array } | null = null;
  #isReading = false;
  #hasEnded = false;
  #failure: { readonly error: unknown } | null = null;

  constructor(
    input: Iterable<Item> | AsyncIterable<Item>,
    limits: SliceLimits,
    textOf: (record: Item) => string = jsonTextOf,
  ) {
    const { [Symbol.asyncIterator]: beginAsync, [Symbol.iterator]: begin } = Object(input) as Partial<
      AsyncIterable<Item> & Iterable<Item>
    >;
    if (beginAsync === undefined && begin === undefined) {
      throw new TypeError('records must be an array, or anything else that can be iterated over');
    }
    this.#iterator = beginAsync?.call(input) ?? begin!.call(input);
    this.#limits = limits;
    this.#textOf = textOf;
  }

  /**
   * Resolves to the next slice, or to null at the end. If the input throws an error, or a record cannot be written as
   * JSON, the records that were read before are still returned as a slice, and the next call throws the error.
   */
  async next(): Promise<Slice<Item> | null> {
    const writer = new BodyWriter(this.#capacityBytes);
    const records: Item[] = [];
    if (this.#carried !== null) {
      records.push(this.#carried.record);
      writer.addBytes(this.#carried.json);
      this.#carried = null;
    }
    this.#isReading = true;
    try {
      await this.#fill(writer, records);
    } catch (error) {
      this.#failure = { error };
    } finally {
      this.#isReading = false;
    }
    if (writer.count === 0) {
      if (this.#failure !== null) throw this.#failure.error;
      return null;
    }
    const body = writer.end();
    this.#capacityBytes = body.length + body.length / 8;
    const firstIndex = this.#index;
    this.#index += writer.count;
    return new Slice(firstIndex, records, body, writer.starts);
  }

  async #fill(writer: BodyWriter, records: Item[]): Promise<void> {
    if (this.#failure !== null) return;
    while (!this.#hasEnded && records.length < this.#limits.records && writer.length < this.#limits.bytes) {
      let value: Item;
      try {
        const step: Promise<IteratorResult<Item>> | IteratorResult<Item> = this.#iterator.next();
        // A result that is not a promise is not awaited, because awaiting takes longer than the rest of this loop.
        const result = 'then' in step ? await step : step;
        if (result.done) {
          this.#hasEnded = true;
          return;
        }
        value = result.value;
      } catch (error) {
        // An iterator that has thrown an error is already closed.
        this.#hasEnded = true;
        throw error;
      }
      writer.addText(this.#textOf(value));
      if (writer.length > this.#limits.bytes && records.length > 0) {
        this.#carried = { record: value, json: writer.takeLast() };
        return;
      }
      records.push(value);
    }
  }

  /** Closes the input's iterator. */
  async close(): Promise<void> {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    try {
      const closed = this.#iterator.return?.();
      // If a read is pending, the iterator closes only after the read, which may never end. So closing is not awaited.
      if (!this.#isReading) await closed;
      else if (closed instanceof Promise) closed.catch(() => {});
    } catch {
      // The error is ignored, as in a for-of loop that ends with an error: the earlier error is the one to report.
    }
  }
}
