// Checks the API key of a request. Almost every check is synchronous, because keys are cached. If another process, such
// as the command line, revokes or rotates a key, the change takes effect within seconds.

import { timingSafeEqual } from 'node:crypto';
import type { ApiKey } from '../store/keys.ts';
import type { OrganisationNumber } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { endedBy, HASH_CHARACTERS, hashSecret, parseKey } from './keys.ts';

/** A cache entry older than this is still used, but is read again in the background. */
const REFRESH_AFTER_MS = 1000;
/**
 * A cache entry older than this is not used. A request trusts its key for one more second, so changes take effect
 * within five seconds.
 */
const UNUSABLE_AFTER_MS = 4000;
/** How long the cache remembers that a key does not exist. */
const UNKNOWN_FOR_MS = 1000;
const NOTE_USE_EVERY_MS = 10_000;
const MOST_KNOWN_KEYS = 50_000;
const MOST_UNKNOWN_KEY_IDS = 10_000;

export interface Clock {
  /** The time of day, for expiry and for noting use. */
  nowMs(): number;
  /** A monotonic time, for the age of cache entries. */
  elapsedMs(): number;
}

const systemClock: Clock = { nowMs: () => Date.now(), elapsedMs: () => performance.now() };

/** The hash of the presented secret. Calls can share this buffer, because each fills and compares it synchronously. */
const presentedHash = Buffer.alloc(HASH_CHARACTERS);

interface KnownKey {
  readonly key: ApiKey;
  readonly secretHash: Buffer;
  /** When the read from the store that returned this entry began. */
  readonly readAtMs: number;
  /** When the last attempt to refresh the entry began. */
  triedAtMs: number;
}

/** A running read, shared by all requests with the same key. */
interface Lookup {
  readonly beganAtMs: number;
  readonly found: Promise<KnownKey | null>;
}

export class Gatekeeper {
  readonly #store: Pick<Store, 'findKey' | 'noteKeysUsed'>;
  readonly #clock: Clock;
  /** Called if last-used times could not be written. The times are kept, and the write is retried. */
  readonly #onError: (error: unknown) => void;
  /** Ordered by the last read, so that the first entry is the oldest and is removed first. */
  readonly #known = new Map<string, KnownKey>();
  /** The ids of keys that do not exist in the store, with the time when the read that showed this began. */
  readonly #unknown = new Map<string, number>();
  readonly #lookups = new Map<string, Lookup>();
  #lastUsedAtMs = new Map<string, number>();
  #noting: Promise<void> = Promise.resolve();
  readonly #timer: NodeJS.Timeout;

  constructor(
    store: Pick<Store, 'findKey' | 'noteKeysUsed'>,
    onError: (error: unknown) => void,
    clock: Clock = systemClock,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#onError = onError;
    this.#timer = setInterval(() => void this.noteUse(), NOTE_USE_EVERY_MS).unref();
  }

  /**
   * Returns the key, or null if it is malformed, unknown, wrong, expired or revoked. Returns a promise if the store has
   * to be read. The promise rejects if the store does not respond.
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
    // Only the hash of the secret is kept in memory while the store is read.
    const secretHash = hashSecret(secret);
    return this.#lookUp(keyId, elapsedMs).then((found) => found && this.#admit(found, secretHash));
  }

  /** Returns the organisation of the presented key id, or null if the key is not cached. Does not check the secret. */
  cachedOrganisation(presented: string): OrganisationNumber | null {
    const parsed = parseKey(presented);
    return (parsed && this.#known.get(parsed.keyId)?.key.organisation) ?? null;
  }

  /** Writes the last-used times that are not written yet. Never rejects. */
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

  /** Reads an entry again in the background. Errors are ignored until the entry is too old to use. */
  #refresh(known: KnownKey, elapsedMs: number): void {
    const { keyId } = known.key;
    if (elapsedMs - known.triedAtMs < REFRESH_AFTER_MS || this.#lookups.has(keyId)) return;
    known.triedAtMs = elapsedMs;
    this.#read(keyId, elapsedMs).catch(() => {});
  }

  #lookUp(keyId: string, elapsedMs: number): Promise<KnownKey | null> {
    const underway = this.#lookups.get(keyId);
    // Does not share a read that began too long ago: even if it is still running, it may have missed a revocation.
    if (underway !== undefined && elapsedMs - underway.beganAtMs < UNUSABLE_AFTER_MS) return underway.found;
    return this.#read(keyId, elapsedMs);
  }

  #read(keyId: string, beganAtMs: number): Promise<KnownKey | null> {
    const lookup: Lookup = {
      beganAtMs,
      found: this.#store
        .findKey(keyId, this.#known.has(keyId))
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
  if (map.size > most) map.delete(map.keys().next().value!);
}
