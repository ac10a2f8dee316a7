// Limits how many requests of one organisation are processed at once. A request counts from the end of its body until
// its response is sent, so a client that does not read its responses delays only its own organisation. Further requests
// wait here. A waiting request takes no memory except for its body.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { OrganisationNumber } from '../store/rows.ts';
import type { AppDependencies } from './app-dependencies.ts';
import { ifStillAllowed } from './gate.ts';
import { type Refusal, refuse } from './refusals.ts';
import { whenClosed } from './request-observation.ts';

interface Line {
  working: number;
  /**
   * One function for each waiting request. It is called with true when the request gets a slot, or with false when the
   * request stops waiting without one.
   */
  readonly waiting: Set<(mayWork: boolean) => void>;
}

export interface WorkSlotsOptions {
  /** The number of requests of one organisation that are processed at once. */
  readonly slots: number;
  readonly mostWaiting: number;
  readonly longestWaitMs: number;
}

/**
 * The slots for uploads and for interactions that are not small. There are enough slots for the store to commit several
 * requests together, and few enough for all unread responses to fit into memory. A response takes some megabytes if
 * thousands of records are invalid.
 */
export const uploadSlots: WorkSlotsOptions = { slots: 16, mostWaiting: 1000, longestWaitMs: 30_000 };
/** The slots for pages of lists. There is only one, because the serving thread serialises pages one after the other. */
export const listSlots: WorkSlotsOptions = { slots: 1, mostWaiting: 100, longestWaitMs: 30_000 };
/**
 * The slots for single records, interactions and segments. A record with the longest texts is 256 KiB of JSON. The serving thread
 * takes four milliseconds to read and serialise it.
 */
export const lookUpSlots: WorkSlotsOptions = { slots: 8, mostWaiting: 1000, longestWaitMs: 30_000 };

/** The slots for SQL queries. A query may use all processors, so further ones would only slow each other down. */
export const sqlSlots: WorkSlotsOptions = { slots: 4, mostWaiting: 100, longestWaitMs: 30_000 };

export class WorkSlots {
  readonly #options: WorkSlotsOptions;
  readonly #lines = new Map<OrganisationNumber, Line>();

  constructor(options: WorkSlotsOptions) {
    this.#options = options;
  }

  /**
   * Resolves to true when the request has a slot, which the caller must give back with `leave`. Resolves to false if
   * too many requests are waiting, or if the wait ends without a slot. If the request has to wait, `onWait` is called
   * with a function that ends the wait.
   */
  async enter(
    organisation: OrganisationNumber,
    onWait: (giveUp: () => void) => void = () => {},
  ): Promise<boolean> {
    const { slots, mostWaiting, longestWaitMs } = this.#options;
    const line = this.#lines.get(organisation) ?? { working: 0, waiting: new Set() };
    this.#lines.set(organisation, line);
    if (line.working < slots) {
      line.working++;
      return true;
    }
    if (line.waiting.size >= mostWaiting) return false;
    return new Promise((resolve) => {
      const settle = (mayWork: boolean): void => {
        clearTimeout(timer);
        line.waiting.delete(settle);
        resolve(mayWork);
      };
      const timer = setTimeout(settle, longestWaitMs, false);
      line.waiting.add(settle);
      onWait(() => settle(false));
    });
  }

  leave(organisation: OrganisationNumber): void {
    const line = this.#lines.get(organisation)!;
    const [next] = line.waiting;
    if (next !== undefined) {
      next(true);
      return;
    }
    line.working--;
    if (line.working === 0) this.#lines.delete(organisation);
  }
}

/**
 * Calls `work` when the organisation has a free slot, unless the client has disconnected or its key is no longer
 * accepted. Frees the slot when `work` has settled and the response is sent or the client has disconnected. So a client
 * cannot free the slot by disconnecting while its work goes on.
 */
export async function inTurn(
  service: AppDependencies,
  slots: WorkSlots,
  tooMany: Refusal,
  request: FastifyRequest,
  reply: FastifyReply,
  work: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  const { organisation } = request.caller!;
  const hasSlot = await slots.enter(organisation, (giveUp) => whenClosed(request, giveUp));
  if (!hasSlot) return request.watched!.isClosed ? reply.hijack() : refuse(reply, tooMany);
  try {
    return await ifStillAllowed(service, request, reply, work);
  } finally {
    whenClosed(request, () => slots.leave(organisation));
  }
}
