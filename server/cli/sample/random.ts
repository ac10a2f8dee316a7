// Random values from faker's generator, which gives the same numbers for a seed on every machine. `Math.pow` and
// similar functions are not used, because their last digit may differ between builds. Values that are drawn millions of
// times are computed here, because faker's functions for them made a sample take 20 to 30 % longer.

import { generateMersenne32Randomizer, type Randomizer, SimpleFaker } from '@faker-js/faker';

const TWO_TO_32 = 2 ** 32;
const idBytes = Buffer.alloc(16);

export class Random {
  readonly #source: Randomizer;
  readonly #faker: SimpleFaker;

  constructor(seed: number) {
    this.#source = generateMersenne32Randomizer(seed);
    this.#faker = new SimpleFaker({ randomizer: this.#source });
  }

  /** Returns a number of at least 0 and below 1. */
  fraction(): number {
    return this.#source.next();
  }

  /** Returns a whole number from `least` to `most`, both included. */
  integer(least: number, most: number): number {
    return least + Math.floor(this.fraction() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  oneOf<T>(items: readonly T[]): T {
    return items[this.integer(0, items.length - 1)]!;
  }

  /** Returns one of the items: the first ones often, the last ones seldom. */
  oneOfRanked<T>(items: readonly T[]): T {
    const fraction = this.fraction();
    return items[Math.floor(fraction * fraction * fraction * items.length)]!;
  }

  /** Returns `count` different items, or all items if there are fewer than `count`. */
  someOf<T>(items: readonly T[], count: number): T[] {
    return this.#faker.helpers.arrayElements(items, count);
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
    for (let byte = 0; byte < idBytes.length; byte += 4) {
      idBytes.writeUInt32BE(this.fraction() * TWO_TO_32, byte);
    }
    idBytes[6] = (idBytes[6]! & 0x0f) | 0x40;
    idBytes[8] = (idBytes[8]! & 0x3f) | 0x80;
    const hex = idBytes.toString('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  }
}
