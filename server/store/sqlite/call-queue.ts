// Queues the calls for a thread, and returns them in groups that the thread handles together. Organisations take turns
// by the weight of their calls, so that no organisation waits behind everything that another one has sent.

import { FairQueue } from '../../fair-queue.ts';
import type { OrganisationNumber } from '../rows.ts';

export interface Weighed {
  /**
   * Null for calls that belong to no organisation, such as key lookups and pings. These calls are small and go first.
   */
  readonly organisation: OrganisationNumber | null;
  /** The approximate cost of the call, in rows. */
  readonly weight: number;
}

/** A call counts as small up to this weight. A group of calls up to this total weight takes a few milliseconds. */
const LIGHT_WEIGHT = 200;
/** After this time, a group of small calls of several organisations ends. */
const LONGEST_SHARED_MS = 50;

export function isLarge({ weight }: Weighed): boolean {
  return weight > LIGHT_WEIGHT;
}

export class CallQueue<Item extends Weighed> {
  readonly #groupWeight: number;
  #ofNobody: Item[] = [];
  readonly #ofOrganisations = new FairQueue<Item>();
  #waitingWeight = 0;
  /** True if calls of no organisation went before a large call whose turn had come. */
  #hasDeferred = false;

  /**
   * `groupWeight` is the approximate weight of the largest groups: a group takes no further call once it has this
   * weight.
   */
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
   * Returns the next group, which holds either small or large calls, so that small calls never wait for a large call in
   * the same group. Calls of no organisation go first, but not twice before a large call whose turn has come. If
   * `mayTakeLarge` is false for an organisation, its large calls stay in the queue. The calls of an organisation keep
   * their order.
   */
  takeGroup(mayTakeLarge: (organisation: OrganisationNumber) => boolean = () => true): Item[] {
    const fullWeight = this.#fullWeight();
    const mayBeLarge = (organisation: OrganisationNumber, item: Item): boolean =>
      isLarge(item) && mayTakeLarge(organisation);
    const isSmall = (_: OrganisationNumber, item: Item): boolean => !isLarge(item);
    const next = this.#ofOrganisations.peek(
      (organisation, item) => !isLarge(item) || mayTakeLarge(organisation),
    );
    const isLargeNext = next !== undefined && isLarge(next);
    const isForLarge = isLargeNext && (this.#ofNobody.length === 0 || this.#hasDeferred);
    this.#hasDeferred = isLargeNext && !isForLarge;
    const group = isForLarge ? [] : this.#ofNobody;
    if (!isForLarge) this.#ofNobody = [];
    let weight = 0;
    while (weight < fullWeight) {
      const item = this.#ofOrganisations.shift(isForLarge ? mayBeLarge : isSmall);
      if (item === undefined) break;
      // Charges the call at once, so that the next call comes from an organisation that was served less, if one is
      // waiting.
      this.#ofOrganisations.charge(item.organisation!, item.weight);
      weight += item.weight;
      group.push(item);
    }
    for (const item of group) this.#waitingWeight -= item.weight;
    return group;
  }

  /**
   * Puts back the calls of a group that were not started. Their organisations stay charged for them, so that the
   * organisations for which the group stopped go next.
   */
  putBack(items: readonly Item[]): void {
    for (const item of items.toReversed()) {
      this.#waitingWeight += item.weight;
      if (item.organisation === null) this.#ofNobody.unshift(item);
      else this.#ofOrganisations.unshift(item.organisation, item);
    }
  }

  /**
   * Returns whether somebody waits for the group to end: a small call that belongs to no organisation, or to an
   * organisation without calls in the group. If small calls of several organisations have taken longer than their weight
   * lets expect, those that are done wait for the others.
   */
  isAwaited(group: readonly Item[], tookMs = 0): boolean {
    const organisations = new Set(group.map(({ organisation }) => organisation));
    return (
      this.#ofNobody.length > 0 ||
      (tookMs > LONGEST_SHARED_MS && organisations.size > 1 && !group.some(isLarge)) ||
      this.#ofOrganisations.someNext(
        (organisation, item) => !isLarge(item) && !organisations.has(organisation),
      )
    );
  }

  /**
   * Returns the weight at which a group counts as full: half of what is waiting, but at least half of #groupWeight and
   * at most #groupWeight. While the thread serves one half of the callers, the other half sends its next calls. If a
   * group took all waiting calls, the thread would be idle until the callers have sent their next ones.
   */
  #fullWeight(): number {
    return Math.min(this.#groupWeight, Math.max(this.#groupWeight, this.#waitingWeight) / 2);
  }
}
