// A queue that shares cost, such as time, fairly between organisations. The next item is always from the organisation
// that has been served least. However many items one organisation adds, another organisation waits only for the item
// that is being served.

interface Line<Item> {
  readonly items: Item[];
  /** The total cost that was charged to the organisation. It begins at `#servedAtLeast` instead of 0. */
  served: number;
}

type MayBeServed<Item, Organisation> = (organisation: Organisation, item: Item) => boolean;

export class FairQueue<Item, Organisation = number> {
  /**
   * Contains all organisations with items. An organisation without items stays while its `served` is above
   * `#servedAtLeast`, so that a pause does not erase what was charged to it.
   */
  readonly #lines = new Map<Organisation, Line<Item>>();
  /** The lowest `served` of an organisation that adds an item after it had none, so that idle time earns no credit. */
  #servedAtLeast = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(organisation: Organisation, item: Item): void {
    const line = this.#lineOf(organisation);
    if (line.items.length === 0) line.served = Math.max(line.served, this.#servedAtLeast);
    line.items.push(item);
    this.#size++;
  }

  /** Removes and returns the next item for which `mayBeServed` is true. An organisation's items keep their order. */
  shift(mayBeServed: MayBeServed<Item, Organisation> = () => true): Item | undefined {
    const next = this.#next(mayBeServed);
    if (next === null) return undefined;
    this.#servedAtLeast = Math.max(this.#servedAtLeast, next.served);
    this.#size--;
    return next.items.shift();
  }

  /** Puts an item back, before all other items of the organisation. */
  unshift(organisation: Organisation, item: Item): void {
    this.#lineOf(organisation).items.unshift(item);
    this.#size++;
  }

  /** Returns whether the test is true for the first item of any organisation. */
  someNext(test: (organisation: Organisation, item: Item) => boolean): boolean {
    return this.#lines
      .entries()
      .some(([organisation, { items }]) => items.length > 0 && test(organisation, items[0]!));
  }

  /** Returns the item that `shift` would return, without removing it. */
  peek(mayBeServed: MayBeServed<Item, Organisation> = () => true): Item | undefined {
    return this.#next(mayBeServed)?.items[0];
  }

  /** Charges a cost. This is separate from `shift`, because the cost of an item may be known only afterwards. */
  charge(organisation: Organisation, cost: number): void {
    this.#lineOf(organisation).served += cost;
  }

  #next(mayBeServed: MayBeServed<Item, Organisation>): Line<Item> | null {
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

  #lineOf(organisation: Organisation): Line<Item> {
    const known = this.#lines.get(organisation);
    if (known !== undefined) return known;
    const line: Line<Item> = { items: [], served: this.#servedAtLeast };
    this.#lines.set(organisation, line);
    return line;
  }
}
