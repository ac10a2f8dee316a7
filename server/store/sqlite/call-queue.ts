// The calls that wait for a thread, in groups that it works on together. Organisations take turns by weight, so that
// nobody waits behind everything that another organisation has sent.

import { FairQueue } from '../../fair-queue.ts';
import type { OrganisationNumber } from '../rows.ts';

export interface Weighed {
  /** Null for calls of no organisation, such as keys and pings: they are small, and go first. */
  readonly organisation: OrganisationNumber | null;
  /** About what the call costs, in rows. */
  readonly weight: number;
}

/** A group of calls up to this weight takes a few milliseconds. */
const LIGHT_WEIGHT = 200;

export class CallQueue<Item extends Weighed> {
  readonly #groupWeight: number;
  #ofNobody: Item[] = [];
  readonly #ofOrganisations = new FairQueue<Item>();
  #waitingWeight = 0;
  /** Whether a group left a large call for the next one. */
  #hasDeferred = false;

  /** A group has about this weight; it ends with the item that fills it. */
  constructor(groupWeight: number) {
    this.#groupWeight = groupWeight;
  }

  get size(): number {
    return this.#ofNobody.length + this.#ofOrganisations.size;
  }

  push(item: Item): void {
    if (item.organisation === null) this.#ofNobody.push(item);
    else this.#ofOrganisations.push(item.organisation, item);
    this.#waitingWeight += item.weight;
  }

  /**
   * Small calls do not wait for a large one that is worked on together with them: a large call that is next after small
   * ones has the next group for itself, even if further small calls come without end. An organisation's calls keep their
   * order.
   */
  takeGroup(mayTakeLarge = true): Item[] {
    const fullWeight = this.#fullWeight();
    const isForLarge = mayTakeLarge && this.#hasDeferred;
    const mayTake = (_: OrganisationNumber, { weight }: Item): boolean =>
      weight > LIGHT_WEIGHT ? mayTakeLarge : !isForLarge;
    const group = isForLarge ? [] : this.#ofNobody;
    if (isForLarge) this.#hasDeferred = false;
    else this.#ofNobody = [];
    let weight = 0;
    while (weight < fullWeight) {
      const next = this.#ofOrganisations.peek(mayTake);
      if (next === undefined) break;
      if (!isForLarge && group.length > 0 && weight <= LIGHT_WEIGHT && next.weight > LIGHT_WEIGHT) {
        this.#hasDeferred = true;
        break;
      }
      const item = this.#ofOrganisations.shift(mayTake)!;
      // Charged at once, so that the next item is another organisation's if one waits that was served less.
      this.#ofOrganisations.charge(item.organisation!, item.weight);
      weight += item.weight;
      group.push(item);
    }
    for (const item of group) this.#waitingWeight -= item.weight;
    return group;
  }

  /** Takes back those of a group that were not begun. They stay charged, so that whoever waits for them is next. */
  putBack(items: readonly Item[]): void {
    for (const item of items.toReversed()) {
      this.#waitingWeight += item.weight;
      if (item.organisation === null) this.#ofNobody.unshift(item);
      else this.#ofOrganisations.unshift(item.organisation, item);
    }
  }

  /** Returns whether a small call waits of somebody who has none in the group. */
  isAwaited(group: readonly Item[]): boolean {
    const organisations = new Set(group.map(({ organisation }) => organisation));
    return (
      this.#ofNobody.length > 0 ||
      this.#ofOrganisations.someNext(
        (organisation, { weight }) => weight <= LIGHT_WEIGHT && !organisations.has(organisation),
      )
    );
  }

  /**
   * Half of what waits, if that is much: while it is worked on, the callers of the other half need not be waited for,
   * and while those are worked on, these bring their next calls. Taking all would leave the thread idle in between.
   */
  #fullWeight(): number {
    return Math.min(this.#groupWeight, Math.max(this.#groupWeight, this.#waitingWeight) / 2);
  }
}
