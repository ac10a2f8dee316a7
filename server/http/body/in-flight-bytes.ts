// Counts the bytes that the requests of each organisation hold in memory. A body counts from its first byte until its
// response is made. A large response counts until it is sent.

import type { OrganisationNumber } from '../../store/rows.ts';
import { ReadingTurns } from './reading-turns.ts';

/**
 * An organisation that holds no more than this is never refused. Otherwise others, whose clients do not read their
 * responses, could keep it from uploading anything.
 */
export const ALWAYS_ALLOWED_BYTES = 128 * 1024;

export class InFlight {
  readonly limitBytes: number;
  readonly #maxBodyBytes: number;
  readonly #bytesOf = new Map<OrganisationNumber, number>();
  readonly turns = new ReadingTurns();
  #bytes = 0;

  constructor(limitBytes: number, maxBodyBytes: number) {
    this.limitBytes = limitBytes;
    this.#maxBodyBytes = maxBodyBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Counts bytes of a body if there is room for them, and returns whether there was room. One organisation may hold at
   * most as many bytes as are still free, or one body of the largest size if that is more. This leaves room for an
   * organisation that holds nothing yet. Few bytes are always allowed.
   */
  take(organisation: OrganisationNumber, bytes: number): boolean {
    const ofOne = (this.#bytesOf.get(organisation) ?? 0) + bytes;
    const freeBytes = this.limitBytes - this.#bytes - bytes;
    const hasRoom = freeBytes >= 0 && ofOne <= Math.max(this.#maxBodyBytes, freeBytes);
    if (!hasRoom && ofOne > ALWAYS_ALLOWED_BYTES) return false;
    this.hold(organisation, bytes);
    return true;
  }

  /** Counts bytes of a response. Unlike `take`, it has no limit, because a response has to be sent in any case. */
  hold(organisation: OrganisationNumber, bytes: number): void {
    this.#bytes += bytes;
    this.#bytesOf.set(organisation, (this.#bytesOf.get(organisation) ?? 0) + bytes);
  }

  give(organisation: OrganisationNumber, bytes: number): void {
    this.#bytes -= bytes;
    const ofOne = (this.#bytesOf.get(organisation) ?? 0) - bytes;
    if (ofOne > 0) this.#bytesOf.set(organisation, ofOne);
    else this.#bytesOf.delete(organisation);
  }
}
