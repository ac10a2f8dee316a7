// A queue in which organisations take turns by cost: the next item belongs to the organisation that has been served
// least. However much one organisation puts in, another waits for the item at work and no more.

interface Line<Item> {
  readonly items: Item[];
  /** The cost of everything that was served to the organisation, on the scale of `#servedAtLeast`. */
  served: number;
}

type MayBeServed<Item> = (organisation: number, item: Item) => boolean;

export class FairQueue<Item> {
  /** Of organisations that wait, and of those that were served more than others, which must be remembered. */
  readonly #lines = new Map<number, Line<Item>>();
  /** Where a new organisation, or one that comes back, starts: time without requests earns no credit. */
  #servedAtLeast = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(organisation: number, item: Item): void {
    const line = this.#lineOf(organisation);
    if (line.items.length === 0) line.served = Math.max(line.served, this.#servedAtLeast);
    line.items.push(item);
    this.#size++;
  }

  /** Removes and returns the next item, of those that may be served now. An organisation's items keep their order. */
  shift(mayBeServed: MayBeServed<Item> = () => true): Item | undefined {
    const next = this.#next(mayBeServed);
    if (next === null) return undefined;
    this.#servedAtLeast = Math.max(this.#servedAtLeast, next.served);
    this.#size--;
    return next.items.shift();
  }

  /** Puts back what was taken, before everything else of the organisation. */
  unshift(organisation: number, item: Item): void {
    this.#lineOf(organisation).items.unshift(item);
    this.#size++;
  }

  /** Returns whether the test holds for the next item of any organisation. */
  someNext(test: (organisation: number, item: Item) => boolean): boolean {
    return this.#lines
      .entries()
      .some(([organisation, { items }]) => items.length > 0 && test(organisation, items[0]!));
  }

  /** Returns what `shift` would. */
  peek(mayBeServed: MayBeServed<Item> = () => true): Item | undefined {
    return this.#next(mayBeServed)?.items[0];
  }

  /** Counts a cost, which may be known only when an item has been worked on, or in parts. */
  charge(organisation: number, cost: number): void {
    this.#lineOf(organisation).served += cost;
  }

  #next(mayBeServed: MayBeServed<Item>): Line<Item> | null {
    let next: Line<Item> | null = null;
    for (const [organisation, line] of this.#lines) {
      if (line.items.length === 0) {
        if (line.served <= this.#servedAtLeast) this.#lines.delete(organisation);
      } else if ((next === null || line.served < next.served) && mayBeServed(organisation, line.items[0]!)) {
        next = line;
      }
    }
    return next;
  }

  #lineOf(organisation: number): Line<Item> {
    const known = this.#lines.get(organisation);
    if (known !== undefined) return known;
    const line: Line<Item> = { items: [], served: this.#servedAtLeast };
    this.#lines.set(organisation, line);
    return line;
  }
}
