// Tells whose key was presented. Almost every answer comes from memory, synchronously; what other processes
// did to a key (the command line revokes and rotates) is seen within seconds.

import { timingSafeEqual } from 'node:crypto';
import type { ApiKey } from '../store/keys.ts';
import { type Store, StoreUnavailable } from '../store/store.ts';
import { endedBy, HASH_CHARACTERS, hashSecret, parseKey } from './keys.ts';

/** From this age on an entry is still used, and read again in the background. */
const REFRESH_AFTER_MS = 1000;
/** From this age on an entry is not used. With a second for the request itself, changes hold within five. */
const UNUSABLE_AFTER_MS = 4000;
/** How long "there is no such key" is believed. */
const UNKNOWN_FOR_MS = 1000;
const NOTE_USE_EVERY_MS = 10_000;
const MOST_KNOWN_KEYS = 50_000;
const MOST_UNKNOWN_KEY_IDS = 10_000;
/** A flood of made-up key ids keeps the store no busier than this; keys in memory are served meanwhile. */
const MOST_FIRST_LOOKUPS_AT_ONCE = 256;

export interface Clock {
  /** The time of day, for expiry and for noting use. */
  nowMs(): number;
  /** Time that only ever runs forward, for the age of what is in memory. */
  elapsedMs(): number;
}

const systemClock: Clock = { nowMs: () => Date.now(), elapsedMs: () => performance.now() };

export interface GatekeeperOptions {
  /** Told when last-used times could not be written; they are kept and tried again. */
  readonly onError: (error: unknown) => void;
  readonly clock?: Clock;
}

/** One for all: it is filled and compared at one go. */
const presentedHash = Buffer.alloc(HASH_CHARACTERS);

interface KnownKey {
  readonly key: ApiKey;
  readonly secretHash: Buffer;
  /** When the read began that found it so. */
  readonly readAtMs: number;
  /** When reading it again was last begun. */
  triedAtMs: number;
}

/** A read under way; whoever wants the same key meanwhile shares it. */
interface Lookup {
  readonly beganAtMs: number;
  readonly found: Promise<KnownKey | null>;
}

export class Gatekeeper {
  readonly #store: Pick<Store, 'findKey' | 'noteKeysUsed'>;
  readonly #clock: Clock;
  readonly #onError: (error: unknown) => void;
  /** In the order of the last read, so that the first is the one to forget. */
  readonly #known = new Map<string, KnownKey>();
  /** Key ids that the store did not have, with when that read began. */
  readonly #unknown = new Map<string, number>();
  readonly #lookups = new Map<string, Lookup>();
  #firstLookups = 0;
  #lastUsedAtMs = new Map<string, number>();
  #noting: Promise<void> = Promise.resolve();
  readonly #timer: NodeJS.Timeout;

  constructor(
    store: Pick<Store, 'findKey' | 'noteKeysUsed'>,
    { onError, clock = systemClock }: GatekeeperOptions,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#onError = onError;
    this.#timer = setInterval(() => void this.noteUse(), NOTE_USE_EVERY_MS).unref();
  }

  /**
   * The key that was presented, or null where it is malformed, unknown, wrong, expired or revoked.
   * Rejects when only the store could tell and it does not answer.
   */
  identify(presented: string): ApiKey | null | Promise<ApiKey | null> {
    const parsed = parseKey(presented);
    if (parsed === null) return null;
    const { keyId, secret } = parsed;
    const elapsedMs = this.#clock.elapsedMs();
    const known = this.#known.get(keyId);
    if (known !== undefined) {
      const ageMs = elapsedMs - known.readAtMs;
      if (ageMs < UNUSABLE_AFTER_MS) {
        if (ageMs >= REFRESH_AFTER_MS) this.#refresh(known, elapsedMs);
        return this.#admit(known, hashSecret(secret));
      }
    } else if (this.#isUnknown(keyId, elapsedMs)) {
      return null;
    }
    // The secret must not wait in memory for the store, so its hash does.
    const secretHash = hashSecret(secret);
    return this.#lookUp(keyId, elapsedMs).then((found) => found && this.#admit(found, secretHash));
  }

  /** Writes the last-used times that are waiting. Never rejects. */
  noteUse(): Promise<void> {
    this.#noting = this.#noting.then(async () => {
      if (this.#lastUsedAtMs.size === 0) return;
      const noted = this.#lastUsedAtMs;
      this.#lastUsedAtMs = new Map();
      try {
        await this.#store.noteKeysUsed(noted);
      } catch (error) {
        for (const [keyId, atMs] of noted) {
          if (!this.#lastUsedAtMs.has(keyId)) this.#lastUsedAtMs.set(keyId, atMs);
        }
        this.#onError(error);
      }
    });
    return this.#noting;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.noteUse();
  }

  #admit(known: KnownKey, secretHash: string): ApiKey | null {
    const nowMs = this.#clock.nowMs();
    presentedHash.write(secretHash, 'latin1');
    if (!timingSafeEqual(presentedHash, known.secretHash)) return null;
    if (endedBy(known.key, nowMs) !== null) return null;
    this.#lastUsedAtMs.set(known.key.keyId, nowMs);
    return known.key;
  }

  #isUnknown(keyId: string, elapsedMs: number): boolean {
    const readAtMs = this.#unknown.get(keyId);
    if (readAtMs === undefined) return false;
    if (elapsedMs - readAtMs < UNKNOWN_FOR_MS) return true;
    this.#unknown.delete(keyId);
    return false;
  }

  /** In the background. A failure is told to whoever comes when the entry has become too old to use. */
  #refresh(known: KnownKey, elapsedMs: number): void {
    const { keyId } = known.key;
    if (elapsedMs - known.triedAtMs < REFRESH_AFTER_MS || this.#lookups.has(keyId)) return;
    known.triedAtMs = elapsedMs;
    this.#read(keyId, elapsedMs).catch(() => {});
  }

  #lookUp(keyId: string, elapsedMs: number): Promise<KnownKey | null> {
    const underway = this.#lookups.get(keyId);
    // A read that began too long ago may have missed a revocation, however late it answers.
    if (underway !== undefined && elapsedMs - underway.beganAtMs < UNUSABLE_AFTER_MS) return underway.found;
    if (this.#known.has(keyId)) return this.#read(keyId, elapsedMs);
    if (this.#firstLookups >= MOST_FIRST_LOOKUPS_AT_ONCE) {
      return Promise.reject(
        new StoreUnavailable('too many keys are being looked up for the first time at once'),
      );
    }
    this.#firstLookups++;
    return this.#read(keyId, elapsedMs).finally(() => {
      this.#firstLookups--;
    });
  }

  #read(keyId: string, beganAtMs: number): Promise<KnownKey | null> {
    const lookup: Lookup = {
      beganAtMs,
      found: this.#store
        .findKey(keyId)
        .then((key) => this.#remember(keyId, key, beganAtMs))
        .finally(() => {
          if (this.#lookups.get(keyId) === lookup) this.#lookups.delete(keyId);
        }),
    };
    this.#lookups.set(keyId, lookup);
    return lookup.found;
  }

  #remember(keyId: string, key: ApiKey | null, readAtMs: number): KnownKey | null {
    const newer = this.#known.get(keyId);
    if (newer !== undefined && newer.readAtMs > readAtMs) return newer;
    this.#known.delete(keyId);
    if (key === null) {
      this.#unknown.set(keyId, readAtMs);
      dropFirstBeyond(this.#unknown, MOST_UNKNOWN_KEY_IDS);
      return null;
    }
    const known = { key, secretHash: Buffer.from(key.secretHash, 'latin1'), readAtMs, triedAtMs: readAtMs };
    this.#known.set(keyId, known);
    dropFirstBeyond(this.#known, MOST_KNOWN_KEYS);
    return known;
  }
}

function dropFirstBeyond(map: Map<string, unknown>, most: number): void {
  if (map.size <= most) return;
  const [first] = map.keys();
  if (first !== undefined) map.delete(first);
}
