// Traces as the rest of the server knows them.

import type { EndedRequest } from './ended-request.ts';
import type { LogFields } from './log.ts';
import type { TraceParent } from './trace-parent.ts';

/** Milliseconds since 1970, with fractions. */
export interface BodyTimes {
  readonly readAtMs: number;
  readonly readUntilMs: number;
}

export interface RequestSpan {
  readonly traceId: string;
  end(ended: EndedRequest, body: BodyTimes | null): void;
}

export interface Traces {
  /** Decides whether the request is sampled; the span of one that is not costs nothing at its end. */
  begin(parent: TraceParent | null, traceState: string | undefined, method: string): RequestSpan;
  /** Sends what is left, if that is quickly done. */
  close(): Promise<void>;
}

export interface TraceSettings {
  readonly version: string;
  readonly env: { readonly [name: string]: string | undefined };
  readonly isTls: boolean;
  warn(summary: LogFields, message: string): void;
}
