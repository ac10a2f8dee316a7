// Queues the calls for a thread and returns them in groups that it handles together. Organisations take turns by
// weight, so that none waits behind everything that another has sent.

import { FairQueue } from '../../fair-queue.ts';
import type { OrganisationNumber } from '../rows.ts';

export interface Weighed {
  /** Null for calls of no organisation, such as keys and pings: they are small and go first. */
  readonly organisation: OrganisationNumber | null;
  /** The approximate cost of the call, in rows. */
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

  /** A group has about this weight: it ends with the item that reaches it. */
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
   * Returns the next group. Small calls do not wait for a large call in the same group: a large call that follows small
   * ones gets the next group for itself, even if small calls keep arriving. The calls of an organisation keep their
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
      // Charged at once, so that an organisation that was served less goes next if one is waiting.
      this.#ofOrganisations.charge(item.organisation!, item.weight);
      weight += item.weight;
      group.push(item);
    }
    for (const item of group) this.#waitingWeight -= item.weight;
    return group;
  }

  /**
   * Puts back the calls of a group that did not start. They stay charged, so that the organisations that wait for them
   * go next.
   */
  putBack(items: readonly Item[]): void {
    for (const item of items.toReversed()) {
      this.#waitingWeight += item.weight;
      if (item.organisation === null) this.#ofNobody.unshift(item);
      else this.#ofOrganisations.unshift(item.organisation, item);
    }
  }

  /** Returns whether a small call is waiting from an organisation that has none in the group. */
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
   * Returns half of the waiting weight if much is waiting. While one half of the callers is served, the other half
   * sends its next calls; taking all of them would leave the thread idle in between.
   */
  #fullWeight(): number {
    return Math.min(this.#groupWeight, Math.max(this.#groupWeight, this.#waitingWeight) / 2);
  }
}
