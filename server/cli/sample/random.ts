// Generates random numbers that are the same on every machine. It uses whole-number arithmetic, and otherwise only
// operations that IEEE 754 rounds exactly. `Math.pow` and similar functions are not used, because their last digit may
// differ between builds. Ids are generated here, not with faker as names are: faker takes 7 µs for each id, which is
// too long for the millions of ids in a large sample.

const WARM_UP_DRAWS = 12;
const TWO_TO_32 = 2 ** 32;
const idBytes = Buffer.alloc(16);

/** The sfc32 generator. */
export class Random {
  #a: number;
  #b = 0x9e3779b9 | 0;
  #c = 0x243f6a88;
  #counter = 1;

  constructor(seed: number) {
    this.#a = seed | 0;
    for (let draw = 0; draw < WARM_UP_DRAWS; draw++) this.#next();
  }

  #next(): number {
    const drawn = (this.#a + this.#b + this.#counter++) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + drawn) | 0;
    return drawn >>> 0;
  }

  /** Returns a number of at least 0 and below 1. */
  fraction(): number {
    return this.#next() / TWO_TO_32;
  }

  /** Returns a whole number from `least` to `most`, both included. */
  integer(least: number, most: number): number {
    return least + Math.floor(this.fraction() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  oneOf<T>(items: readonly T[]): T {
    return items[Math.floor(this.fraction() * items.length)]!;
  }

  /** Returns one of the items: the first ones often, the last ones seldom. */
  oneOfRanked<T>(items: readonly T[]): T {
    const fraction = this.fraction();
    return items[Math.floor(fraction * fraction * fraction * items.length)]!;
  }

  /** Returns `count` different items in their original order, or all items if there are fewer than `count`. */
  someOf<T>(items: readonly T[], count: number): T[] {
    let wanted = count;
    return items.filter((_, index) => {
      const isTaken = this.chance(wanted / (items.length - index));
      if (isTaken) wanted--;
      return isTaken;
    });
  }

  /** Returns an index into the weights, with a probability in proportion to its weight. */
  weighted(weights: readonly number[]): number {
    let rest = this.fraction() * weights.reduce((sum, weight) => sum + weight, 0);
    let index = 0;
    while (index < weights.length - 1 && rest >= weights[index]!) rest -= weights[index++]!;
    return index;
  }

  /**
   * Draws whole numbers from `least` to `most` until one is accepted, and returns it. `shareOf` returns the probability
   * that a number is accepted.
   */
  integerBy(least: number, most: number, shareOf: (drawn: number) => number): number {
    for (;;) {
      const drawn = this.integer(least, most);
      if (this.chance(shareOf(drawn))) return drawn;
    }
  }

  /** Returns a time from `firstMs` to `lastMs`, both included, a whole number of seconds after `firstMs`. */
  momentMs(firstMs: number, lastMs: number): number {
    return firstMs + this.integer(0, Math.floor((lastMs - firstMs) / 1000)) * 1000;
  }

  /** Returns a lower-case UUID of version 4. */
  uuid(): string {
    for (let byte = 0; byte < idBytes.length; byte += 4) idBytes.writeUInt32BE(this.#next(), byte);
    idBytes[6] = (idBytes[6]! & 0x0f) | 0x40;
    idBytes[8] = (idBytes[8]! & 0x3f) | 0x80;
    const hex = idBytes.toString('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  }
}
