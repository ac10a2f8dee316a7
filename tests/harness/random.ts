// Repeatable random choices: the same seed gives the same choices.

/** From HEADGATE_TEST_SEED, to repeat a run; otherwise a new one. */
export function chosenSeed(): number {
  const given = process.env.HEADGATE_TEST_SEED;
  return given === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(given);
}

export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** At least 0, below 1 (the mulberry32 generator). */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Both ends included. */
  integer(least: number, most: number): number {
    return least + Math.floor(this.fraction() * (most - least + 1));
  }

  oneOf<T>(items: readonly T[]): T {
    return items[this.integer(0, items.length - 1)]!;
  }

  isLuckier(chance: number): boolean {
    return this.fraction() < chance;
  }
}
