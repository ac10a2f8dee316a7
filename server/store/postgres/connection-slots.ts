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
  readonly owner: OrganisationNumber | 'keys' | 'upkeep' | 'mixed groups';
  /**
   * The call is aborted after this time, even if no other call waits. Such an abort does not count as a timeout of the
   * owner.
   */
  readonly limitMs?: number;
}

/** For keys, organisations and readiness checks. */
export const vital: Claim = { lane: 'vital', owner: 'keys' };
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

export interface SlotLimits {
  readonly vitalSlots: number;
  /** How many slots all other calls share, while no call is slow. */
  readonly slots: number;
  /** How many of these slots lists may hold. */
  readonly listSlots: number;
  /** How many additional slots may be opened, to replace slots that slow calls hold. */
  readonly spareSlots: number;
  /** How many slots one organisation may hold in total, and how many of these may be for lists. */
  readonly placesOfOwner: number;
  readonly listSlotsOfOwner: number;
  /** How many calls may run at once, in total, for organisations whose last call timed out. */
  readonly probingSlots: number;
  readonly slowAfterMs: number;
  /**
   * A call that fails after this time counts as timed out. A call that is still running after this time is aborted if
   * other calls need its slot.
   */
  readonly lateAfterMs: number;
  /** After this many timeouts in a row, an organisation's calls fail at once while its probing call hangs. */
  readonly brokenAfterTimeouts: number;
  readonly patienceMs: number;
  readonly waitingOfOwner: number;
  readonly tickMs: number;
}

/**
 * Four slots are enough: one connection writes 30,000 rows a second or more, and one thread prepares hardly three times
 * as many. The fourth connection keeps small calls from waiting behind large ones. More connections would only compete
 * within the server. `patienceMs`, the timeout of a waiting call, is longer than any burst takes and shorter than
 * clients wait.
 */
export const slotLimits: SlotLimits = {
  vitalSlots: 2,
  slots: 4,
  listSlots: 2,
  spareSlots: 4,
  placesOfOwner: 3,
  listSlotsOfOwner: 1,
  probingSlots: 2,
  slowAfterMs: 1000,
  lateAfterMs: 5000,
  brokenAfterTimeouts: 3,
  patienceMs: 10_000,
  waitingOfOwner: 10_000,
  tickMs: 100,
};

export function mostConnections({ vitalSlots, slots, spareSlots }: SlotLimits): number {
  return vitalSlots + slots + spareSlots;
}

export interface ConnectionSlot {
  readonly isGivenUp: boolean;
  /**
   * Registers `end`, which has to make the call fail soon. `end` is called when the slot is given up, or at once if
   * that has already happened.
   */
  onGivenUp(end: () => void): void;
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
  readonly lane: Lane;
  readonly owner: Claim['owner'];
  readonly waiting: Waiting[];
  readonly held: Set<HeldSlot>;
  /**
   * The number of timeouts since a call of this account was last served. While it is not 0, the account's calls are
   * probing: they show whether the account is served again.
   */
  timeouts: number;
}

/** Says for each lane whether a slot is free, and whether one more probing call may run. */
type Room = Readonly<Record<Lane | 'probing', boolean>>;

export class ConnectionSlots {
  readonly #limits: SlotLimits;
  readonly #accounts = new Map<string, Account>();
  /** Accounts with waiting calls, in the order of their turns. */
  readonly #waiting = new Map<string, Account>();
  readonly #held = new Set<HeldSlot>();
  #ticking: NodeJS.Timeout | null = null;

  constructor(limits: SlotLimits = slotLimits) {
    this.#limits = limits;
  }

  /**
   * Resolves when the call may start. Rejects with StoreUnavailable if the wait takes too long, if too many calls of
   * the owner already wait, or if the owner's calls hang.
   */
  take(claim: Claim): Promise<ConnectionSlot> {
    const [name, account] = this.#accountOf(claim);
    if (this.#isBroken(account)) return Promise.reject(broken());
    const { waitingOfOwner } = this.#limits;
    if (account.waiting.length >= waitingOfOwner) {
      return Promise.reject(
        new StoreBusy(`${waitingOfOwner} calls of one organisation already wait for PostgreSQL`),
      );
    }
    const { promise, resolve, reject } = Promise.withResolvers<ConnectionSlot>();
    account.waiting.push({ claim, sinceMs: performance.now(), begin: resolve, refuse: reject });
    this.#waiting.set(name, account);
    this.#beginWaiting();
    return promise;
  }

  #accountOf({ lane, owner }: Claim): readonly [string, Account] {
    const name = `${lane} ${owner}`;
    const known = this.#accounts.get(name);
    if (known !== undefined) return [name, known];
    const account: Account = { lane, owner, waiting: [], held: new Set(), timeouts: 0 };
    this.#accounts.set(name, account);
    return [name, account];
  }

  #beginWaiting(): void {
    for (let next = this.#next(); next !== null; next = this.#next()) {
      const [name, account] = next;
      const { claim, begin } = account.waiting.shift()!;
      this.#waiting.delete(name);
      if (account.waiting.length > 0) this.#waiting.set(name, account);
      begin(this.#hold(name, claim, account));
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
  #next(): readonly [string, Account] | null {
    if (this.#waiting.size === 0) return null;
    const room = this.#room();
    let served: { readonly entry: readonly [string, Account]; readonly held: number } | null = null;
    let probing: readonly [string, Account] | null = null;
    for (const entry of this.#waiting) {
      const [, account] = entry;
      if (!room[account.lane] || !this.#mayHoldMore(account)) continue;
      const held = this.#heldBy(account.owner);
      if (account.timeouts > 0) {
        if (room.probing) probing ??= entry;
      } else if (served === null || held < served.held) served = { entry, held };
    }
    const overdueSinceMs = performance.now() - this.#limits.patienceMs / 2;
    const isOverdue = probing !== null && probing[1].waiting[0]!.sinceMs <= overdueSinceMs;
    return isOverdue ? probing : (served?.entry ?? probing);
  }

  #mayHoldMore({ lane, owner, held, timeouts }: Account): boolean {
    const { placesOfOwner, listSlotsOfOwner, brokenAfterTimeouts } = this.#limits;
    if (lane === 'vital') return true;
    if (timeouts >= brokenAfterTimeouts && held.size > 0) return false;
    if (lane === 'list' && held.size >= listSlotsOfOwner) return false;
    return this.#heldBy(owner) < placesOfOwner;
  }

  #heldBy(owner: Claim['owner']): number {
    let held = 0;
    for (const { account } of this.#held) if (account.owner === owner) held++;
    return held;
  }

  #room(): Room {
    const { vitalSlots, slots, listSlots, spareSlots, probingSlots } = this.#limits;
    const count = { vital: 0, quick: 0, quickLists: 0, slow: 0, probing: 0 };
    for (const slot of this.#held) {
      if (slot.isProbing) count.probing++;
      if (slot.account.lane === 'vital') count.vital++;
      else if (this.#isSlow(slot)) count.slow++;
      else {
        count.quick++;
        if (slot.account.lane === 'list') count.quickLists++;
      }
    }
    const isFree = count.quick + Math.max(0, count.slow - spareSlots) < slots;
    return {
      vital: count.vital < vitalSlots,
      ordinary: isFree,
      list: isFree && count.quickLists < listSlots,
      probing: count.probing < probingSlots,
    };
  }

  #isSlow({ sinceMs }: HeldSlot): boolean {
    return performance.now() - sinceMs >= this.#limits.slowAfterMs;
  }

  #hold(name: string, claim: Claim, account: Account): ConnectionSlot {
    const slot = new HeldSlot(claim, account, (isUnavailable) => {
      this.#held.delete(slot);
      account.held.delete(slot);
      if (isUnavailable) this.#noteFailure(slot);
      else account.timeouts = 0;
      this.#forgetIdle(name, account);
      this.#beginWaiting();
    });
    this.#held.add(slot);
    account.held.add(slot);
    return slot;
  }

  #noteFailure({ account, claim, sinceMs }: HeldSlot): void {
    const isLate = performance.now() - sinceMs >= this.#limits.lateAfterMs;
    if (isLate && claim.limitMs === undefined && claim.lane !== 'vital') account.timeouts++;
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
      (slot) => slot.account.lane !== 'vital' && !slot.isGivenUp && this.#isSlow(slot),
    );
    const lateSinceMs = performance.now() - this.#limits.lateAfterMs;
    for (const slot of slow.slice(0, Math.max(0, slow.length - this.#limits.spareSlots))) {
      if (slot.sinceMs <= lateSinceMs) slot.giveUp();
    }
  }

  /**
   * Returns whether a new call would be in vain: the account's last calls timed out, and either its probing call hangs
   * as well, or hanging calls hold all slots for probing.
   */
  #isBroken(account: Account): boolean {
    if (account.timeouts < this.#limits.brokenAfterTimeouts) return false;
    if (account.held.values().some((slot) => this.#isSlow(slot))) return true;
    const hanging = [...this.#held].filter((slot) => slot.isProbing && this.#isSlow(slot));
    return hanging.length >= this.#limits.probingSlots;
  }

  /** Checks regularly while calls wait, because calls become slow and time out without any event. */
  #tickWhileWaiting(): void {
    if (this.#waiting.size === 0) {
      clearInterval(this.#ticking ?? undefined);
      this.#ticking = null;
    } else {
      this.#ticking ??= setInterval(() => {
        for (const [name, account] of this.#waiting) this.#refuseImpatient(name, account);
        this.#beginWaiting();
      }, this.#limits.tickMs);
    }
  }

  #refuseImpatient(name: string, account: Account): void {
    const { patienceMs } = this.#limits;
    const isBroken = this.#isBroken(account);
    const sinceMs = performance.now() - patienceMs;
    const patient = account.waiting.findIndex((waiting) => !isBroken && waiting.sinceMs > sinceMs);
    const refused = account.waiting.splice(0, patient === -1 ? account.waiting.length : patient);
    for (const { refuse } of refused) {
      refuse(
        isBroken
          ? broken()
          : new StoreBusy(`the connections to PostgreSQL were busy for ${patienceMs / 1000} s`),
      );
    }
    if (account.waiting.length === 0) this.#waiting.delete(name);
    this.#forgetIdle(name, account);
  }

  #forgetIdle(name: string, { held, waiting, timeouts }: Account): void {
    if (held.size === 0 && waiting.length === 0 && timeouts === 0) this.#accounts.delete(name);
  }
}

class HeldSlot implements ConnectionSlot {
  readonly claim: Claim;
  readonly account: Account;
  readonly sinceMs = performance.now();
  /** True if the account's last call timed out, so that this call shows whether the account is served again. */
  readonly isProbing: boolean;
  readonly #release: (isUnavailable: boolean) => void;
  readonly #limit: NodeJS.Timeout | null;
  #end: (() => void) | null = null;
  #isGivenUp = false;

  constructor(claim: Claim, account: Account, release: (isUnavailable: boolean) => void) {
    this.claim = claim;
    this.account = account;
    this.isProbing = account.timeouts > 0;
    this.#release = release;
    this.#limit = claim.limitMs === undefined ? null : setTimeout(() => this.giveUp(), claim.limitMs);
  }

  get isGivenUp(): boolean {
    return this.#isGivenUp;
  }

  giveUp(): void {
    if (this.#isGivenUp) return;
    this.#isGivenUp = true;
    this.#end?.();
  }

  onGivenUp(end: () => void): void {
    this.#end = end;
    if (this.#isGivenUp) end();
  }

  giveBack(isUnavailable: boolean): void {
    clearTimeout(this.#limit ?? undefined);
    this.#release(isUnavailable);
  }
}

function broken(): StoreUnavailable {
  return new StoreUnavailable(
    'PostgreSQL did not serve the last calls of this organisation in time, and the call that retries hangs',
  );
}
