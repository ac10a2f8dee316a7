// Counts the bytes that requests hold in memory, by organisation: bodies from their first byte until their response is
// made, and large responses until they are sent.

import type { OrganisationNumber } from '../../store/rows.ts';
import { ReadingTurns } from './reading-turns.ts';

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
   * Counts bytes of a body and returns true if there is room for them. An organisation may hold as much as it leaves
   * free, or one body if that is more, so that there is room for an organisation that holds nothing yet.
   */
  take(organisation: OrganisationNumber, bytes: number): boolean {
    const ofOne = (this.#bytesOf.get(organisation) ?? 0) + bytes;
    const freeBytes = this.limitBytes - this.#bytes - bytes;
    if (freeBytes < 0 || ofOne > Math.max(this.#maxBodyBytes, freeBytes)) return false;
    this.hold(organisation, bytes);
    return true;
  }

  /** Counts bytes of a response without a limit, because the response has to be sent in any case. */
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
