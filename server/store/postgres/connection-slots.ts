// Decides which call gets a connection. Organisations take turns. If the calls of an organisation hang, because its
// Citus worker is frozen or its rows are locked, they can hold only some of the connections, so that other
// organisations are still served.

import type { OrganisationNumber } from '../rows.ts';
import { StoreBusy, StoreUnavailable } from '../store.ts';

/**
 * - `vital`: keys, organisations and readiness checks, which never wait behind other work.
 * - `list`: lists, which may hold only some of the remaining connections.
 * - `ordinary`: everything else.
 */
type Lane = 'vital' | 'ordinary' | 'list';

/** Says for whom and in which lane a call needs a connection. */
export interface Claim {
  readonly lane: Lane;
  readonly owner: OrganisationNumber | 'pings' | 'known keys' | 'other keys' | 'upkeep' | 'mixed groups';
  /**
   * The call is aborted after this time, even if no other call waits. Such an abort does not count as a timeout of the
   * owner.
   */
  readonly limitMs?: number;
}

/** Each has its own owner, so that none waits behind thousands of look-ups of keys that do not exist. */
export const pings: Claim = { lane: 'vital', owner: 'pings' };
/** A look-up that hangs is aborted early, because every request waits for one. */
const LOOK_UP_LIMIT_MS = 8000;
export const knownKeys: Claim = { lane: 'vital', owner: 'known keys', limitMs: LOOK_UP_LIMIT_MS };
export const otherKeys: Claim = { lane: 'vital', owner: 'other keys' };
export const unknownKeys: Claim = { ...otherKeys, limitMs: LOOK_UP_LIMIT_MS };
export const upkeep: Claim = { lane: 'ordinary', owner: 'upkeep' };
/**
 * For calls for several organisations at once. Such a call is aborted early, because nobody can tell which organisation
 * makes it hang.
 */
export const mixedGroups: Claim = { lane: 'ordinary', owner: 'mixed groups', limitMs: 2000 };

export function callsOf(organisation: OrganisationNumber): Claim {
  return { lane: 'ordinary', owner: organisation };
}

export function listsOf(organisation: OrganisationNumber): Claim {
  return { lane: 'list', owner: organisation };
}

/**
 * Four slots are enough: one connection writes 30,000 rows a second or more, and one thread prepares hardly three times
 * as many. The fourth connection keeps small calls from waiting behind large ones. More connections would only compete
 * within the server.
 */
export const slotLimits = {
  vitalSlots: 2,
  /** How many slots all other calls share, while no call is slow. */
  slots: 4,
  /** How many of these slots lists may hold. */
  listSlots: 2,
  /** How many additional slots may be opened, to replace slots that slow calls hold. */
  spareSlots: 4,
  /** How many slots one organisation may hold in total, and how many of these may be for lists. */
  placesOfOwner: 3,
  listSlotsOfOwner: 1,
  /** How many calls may run at once, in total, for organisations whose last call timed out. */
  probingSlots: 2,
  slowAfterMs: 1000,
  /**
   * A call that fails after this time counts as timed out. A call that is still running after this time is aborted if
   * other calls need its slot.
   */
  lateAfterMs: 5000,
  /** After this many timeouts in a row, an organisation's calls fail at once while its probing call hangs. */
  brokenAfterTimeouts: 3,
  /** The timeout of a waiting call. It is longer than any burst takes and shorter than clients wait. */
  patienceMs: 10_000,
  waitingOfOwner: 10_000,
  tickMs: 100,
};

export type SlotLimits = Readonly<typeof slotLimits>;

export interface ConnectionSlot {
  /** Is aborted when the slot is given up. The call then has to fail soon. */
  readonly givenUp: AbortSignal;
  /** Releases the slot. `isUnavailable` is true if the call failed because the store did not serve it. */
  giveBack(isUnavailable: boolean): void;
}

interface Waiting {
  readonly claim: Claim;
  readonly sinceMs: number;
  begin(slot: ConnectionSlot): void;
  refuse(error: StoreUnavailable): void;
}

/**
 * The calls of one owner in one lane. Each lane has its own account, so that lists that take too long do not stop the
 * organisation's uploads.
 */
interface Account {
  readonly name: string;
  readonly lane: Lane;
  readonly owner: Claim['owner'];
  readonly waiting: Waiting[];
  /**
   * The number of timeouts since a call of this account was last served. While it is not 0, the account's calls are
   * probing: they show whether the account is served again.
   */
  timeouts: number;
}

interface HeldSlot {
  readonly account: Account;
  readonly sinceMs: number;
  readonly isProbing: boolean;
  readonly givingUp: AbortController;
}

export class ConnectionSlots {
  readonly #limits: SlotLimits;
  readonly #accounts = new Map<string, Account>();
  /** Accounts with waiting calls, in the order of their turns. */
  readonly #waiting = new Set<Account>();
  readonly #held = new Set<HeldSlot>();
  #ticking: NodeJS.Timeout | undefined;

  constructor(limits: SlotLimits = slotLimits) {
    this.#limits = limits;
  }

  /**
   * Resolves when the call may start. Rejects with StoreUnavailable if the wait takes too long, if too many calls of
   * the owner already wait, or if the owner's calls hang.
   */
  async take(claim: Claim): Promise<ConnectionSlot> {
    const account = this.#accountOf(claim);
    if (this.#isBroken(account)) throw broken();
    const { waitingOfOwner } = this.#limits;
    if (account.waiting.length >= waitingOfOwner) {
      throw new StoreBusy(`${waitingOfOwner} calls of one organisation already wait for PostgreSQL`);
    }
    const { promise, resolve, reject } = Promise.withResolvers<ConnectionSlot>();
    account.waiting.push({ claim, sinceMs: performance.now(), begin: resolve, refuse: reject });
    this.#waiting.add(account);
    this.#beginWaiting();
    return promise;
  }

  #accountOf({ lane, owner }: Claim): Account {
    const name = `${lane} ${owner}`;
    const account = this.#accounts.get(name) ?? { name, lane, owner, waiting: [], timeouts: 0 };
    this.#accounts.set(name, account);
    return account;
  }

  #beginWaiting(): void {
    for (let account = this.#next(); account !== null; account = this.#next()) {
      const { claim, begin } = account.waiting.shift()!;
      this.#waiting.delete(account);
      if (account.waiting.length > 0) this.#waiting.add(account);
      begin(this.#hold(claim, account));
    }
    this.#giveUpLate();
    this.#tickWhileWaiting();
  }

  /**
   * Returns the account that goes next: the account whose owner holds the fewest slots, or among equals the one whose
   * turn it is. Accounts whose last call timed out go last, until their first call has waited for half of `patienceMs`.
   * If they always went last, they might never get a slot while others wait, and could not show that they are served
   * again.
   */
  #next(): Account | null {
    if (this.#waiting.size === 0) return null;
    const room = this.#room();
    let served: Account | null = null;
    let fewestHeld = Number.POSITIVE_INFINITY;
    let probing: Account | null = null;
    for (const account of this.#waiting) {
      if (!room[account.lane] || !this.#mayHoldMore(account)) continue;
      if (account.timeouts > 0) {
        if (room.probing) probing ??= account;
        continue;
      }
      const held = this.#heldBy(account.owner);
      if (held < fewestHeld) [served, fewestHeld] = [account, held];
    }
    const overdueSinceMs = performance.now() - this.#limits.patienceMs / 2;
    const isOverdue = probing !== null && probing.waiting[0]!.sinceMs <= overdueSinceMs;
    return isOverdue ? probing : (served ?? probing);
  }

  #mayHoldMore(account: Account): boolean {
    const { placesOfOwner, listSlotsOfOwner, brokenAfterTimeouts } = this.#limits;
    const { lane, owner, timeouts } = account;
    if (lane === 'vital') return true;
    const held = this.#count((slot) => slot.account === account);
    if (timeouts >= brokenAfterTimeouts && held > 0) return false;
    if (lane === 'list' && held >= listSlotsOfOwner) return false;
    return this.#heldBy(owner) < placesOfOwner;
  }

  #count(test: (slot: HeldSlot) => boolean): number {
    let count = 0;
    for (const slot of this.#held) if (test(slot)) count++;
    return count;
  }

  #heldBy(owner: Claim['owner']): number {
    return this.#count(({ account }) => account.owner === owner);
  }

  /** Returns for each lane whether a slot is free, and whether one more probing call may run. */
  #room(): Readonly<Record<Lane | 'probing', boolean>> {
    const { vitalSlots, slots, listSlots, spareSlots, probingSlots } = this.#limits;
    const vitals = this.#count(({ account }) => account.lane === 'vital');
    const slow = this.#count((slot) => slot.account.lane !== 'vital' && this.#isSlow(slot));
    const quick = this.#held.size - vitals - slow;
    const quickLists = this.#count((slot) => slot.account.lane === 'list' && !this.#isSlow(slot));
    const isFree = quick + Math.max(0, slow - spareSlots) < slots;
    return {
      vital: vitals < vitalSlots,
      ordinary: isFree,
      list: isFree && quickLists < listSlots,
      probing: this.#count(({ isProbing }) => isProbing) < probingSlots,
    };
  }

  #isSlow({ sinceMs }: HeldSlot): boolean {
    return performance.now() - sinceMs >= this.#limits.slowAfterMs;
  }

  #hold({ lane, limitMs }: Claim, account: Account): ConnectionSlot {
    const givingUp = new AbortController();
    const sinceMs = performance.now();
    const slot: HeldSlot = { account, sinceMs, isProbing: account.timeouts > 0, givingUp };
    const limit = limitMs === undefined ? undefined : setTimeout(() => givingUp.abort(), limitMs);
    this.#held.add(slot);
    return {
      givenUp: givingUp.signal,
      giveBack: (isUnavailable) => {
        clearTimeout(limit);
        this.#held.delete(slot);
        const isLate = performance.now() - sinceMs >= this.#limits.lateAfterMs;
        if (!isUnavailable) account.timeouts = 0;
        else if (isLate && limitMs === undefined && lane !== 'vital') account.timeouts++;
        this.#forgetIdle(account);
        this.#beginWaiting();
      },
    };
  }

  /**
   * Aborts late calls if others wait for their slots. Slow calls may then hold only as many slots as there are spare
   * ones, and the oldest calls are aborted first.
   */
  #giveUpLate(): void {
    const waits = (account: Account): boolean =>
      account.timeouts === 0 && account.lane !== 'vital' && this.#mayHoldMore(account);
    if (!this.#waiting.values().some(waits)) return;
    const slow = [...this.#held].filter(
      (slot) => slot.account.lane !== 'vital' && !slot.givingUp.signal.aborted && this.#isSlow(slot),
    );
    const lateSinceMs = performance.now() - this.#limits.lateAfterMs;
    for (const { sinceMs, givingUp } of slow.slice(0, Math.max(0, slow.length - this.#limits.spareSlots))) {
      if (sinceMs <= lateSinceMs) givingUp.abort();
    }
  }

  /**
   * Returns whether a new call would be in vain: the account's last calls timed out, and either its probing call hangs
   * as well, or hanging calls hold all slots for probing.
   */
  #isBroken(account: Account): boolean {
    if (account.timeouts < this.#limits.brokenAfterTimeouts) return false;
    if (this.#count((slot) => slot.account === account && this.#isSlow(slot)) > 0) return true;
    return this.#count((slot) => slot.isProbing && this.#isSlow(slot)) >= this.#limits.probingSlots;
  }

  /** Checks regularly while calls wait, because calls become slow and time out without any event. */
  #tickWhileWaiting(): void {
    if (this.#waiting.size === 0) {
      clearInterval(this.#ticking);
      this.#ticking = undefined;
    } else {
      this.#ticking ??= setInterval(() => {
        for (const account of this.#waiting) this.#refuseImpatient(account);
        this.#beginWaiting();
      }, this.#limits.tickMs);
    }
  }

  #refuseImpatient(account: Account): void {
    const { waiting } = account;
    const { patienceMs } = this.#limits;
    const isBroken = this.#isBroken(account);
    const sinceMs = performance.now() - patienceMs;
    while (waiting.length > 0 && (isBroken || waiting[0]!.sinceMs <= sinceMs)) {
      const busy = `the connections to PostgreSQL were busy for ${patienceMs / 1000} s`;
      waiting.shift()!.refuse(isBroken ? broken() : new StoreBusy(busy));
    }
    if (waiting.length === 0) this.#waiting.delete(account);
    this.#forgetIdle(account);
  }

  #forgetIdle(account: Account): void {
    const isHeld = this.#count((slot) => slot.account === account) > 0;
    if (!isHeld && account.waiting.length === 0 && account.timeouts === 0)
      this.#accounts.delete(account.name);
  }
}

function broken(): StoreUnavailable {
  return new StoreUnavailable(
    'PostgreSQL did not serve the last calls of this organisation in time, and the call that retries hangs',
  );
}
