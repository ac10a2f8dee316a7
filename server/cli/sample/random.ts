// Chance that comes out the same on every machine: whole-number arithmetic, and of the rest only what IEEE 754
// rounds exactly. `Math.pow`, `Math.log` and the like may differ in their last digit from one build to another.

const hexDigits = Buffer.from('0123456789abcdef');
/** Ids are put together here, in a fraction of the time that joining texts takes. */
const idText = Buffer.alloc(36, '-');

function writeHex(value: number, place: number, digits: number): void {
  for (let digit = digits - 1; digit >= 0; digit--) {
    idText[place + digit] = hexDigits[value & 0xf]!;
    value >>>= 4;
  }
}

const WARM_UP_DRAWS = 12;
const TWO_TO_32 = 2 ** 32;

/** One of many independent streams of a seed, told apart by the name and the number (the sfc32 generator). */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number, stream: string, number = 0) {
    this.#a = seed | 0;
    this.#b = hashOf(stream);
    this.#c = number | 0;
    for (let draw = 0; draw < WARM_UP_DRAWS; draw++) this.#next();
  }

  #next(): number {
    const drawn = (this.#a + this.#b + this.#counter++) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + drawn) | 0;
    return drawn >>> 0;
  }

  /** At least 0, below 1. */
  fraction(): number {
    return this.#next() / TWO_TO_32;
  }

  /** Both ends included. */
  integer(least: number, most: number): number {
    return least + Math.floor(this.fraction() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  oneOf<T>(items: readonly T[]): T {
    return items[Math.floor(this.fraction() * items.length)]!;
  }

  /** Between -1 and 1, mostly near 0. */
  nearZero(): number {
    return ((this.fraction() + this.fraction() + this.fraction()) * 2) / 3 - 1;
  }

  /** Lower case, of version 4. */
  uuid(): string {
    const second = this.#next();
    const third = this.#next();
    writeHex(this.#next(), 0, 8);
    writeHex(second >>> 16, 9, 4);
    writeHex((second & 0x0fff) | 0x4000, 14, 4);
    writeHex(((third >>> 16) & 0x3fff) | 0x8000, 19, 4);
    writeHex(third & 0xffff, 24, 4);
    writeHex(this.#next(), 28, 8);
    return idText.toString('latin1');
  }
}

function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash;
}

/** Places, each drawn as often as its weight says. */
export class Weighted {
  readonly #sums: Float64Array;

  constructor(weights: readonly number[]) {
    let sum = 0;
    this.#sums = Float64Array.from(weights, (weight) => {
      sum += weight;
      return sum;
    });
  }

  /** One of the places from `first` to `last`, both included. */
  draw(random: Random, first = 0, last = this.#sums.length - 1): number {
    const below = first === 0 ? 0 : this.#sums[first - 1]!;
    const target = below + random.fraction() * (this.#sums[last]! - below);
    let low = first;
    let high = last;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#sums[middle]! > target) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** A few come up very often and most seldom: the weight of each place is that of the first, divided by its rank. */
export function zipf(places: number): Weighted {
  return new Weighted(Array.from({ length: places }, (_, place) => 1 / (place + 1)));
}
