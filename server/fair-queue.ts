// A queue that shares cost fairly between organisations: the next item is from the organisation that has been served
// least. However many items one organisation adds, another waits only for the item that is being served.

interface Line<Item> {
  readonly items: Item[];
  /** The total cost that was served to the organisation, on the scale of `#servedAtLeast`. */
  served: number;
}

type MayBeServed<Item> = (organisation: number, item: Item) => boolean;

export class FairQueue<Item> {
  /**
   * The organisations with items, and those without whose `served` is above `#servedAtLeast` and must be remembered.
   */
  readonly #lines = new Map<number, Line<Item>>();
  /** The starting value of `served` for a new or returning organisation, so that idle time earns no credit. */
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

  /** Removes and returns the next item for which `mayBeServed` is true. An organisation's items keep their order. */
  shift(mayBeServed: MayBeServed<Item> = () => true): Item | undefined {
    const next = this.#next(mayBeServed);
    if (next === null) return undefined;
    this.#servedAtLeast = Math.max(this.#servedAtLeast, next.served);
    this.#size--;
    return next.items.shift();
  }

  /** Puts an item back, before all other items of the organisation. */
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

  /** Returns the item that `shift` would return, without removing it. */
  peek(mayBeServed: MayBeServed<Item> = () => true): Item | undefined {
    return this.#next(mayBeServed)?.items[0];
  }

  /** Charges a cost to the organisation. It is separate from `shift`, because a cost may be known only afterwards. */
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
