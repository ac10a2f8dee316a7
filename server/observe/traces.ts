// Declares the interface of traces, independent of OpenTelemetry.

import type { EndedRequest } from './ended-request.ts';
import type { LogFields } from './log.ts';
import type { TraceParent } from './trace-parent.ts';

/** When the server began and finished reading the body, in milliseconds since 1970 with fractions. */
export interface BodyTimes {
  readonly readAtMs: number;
  readonly readUntilMs: number;
}

export interface RequestSpan {
  readonly traceId: string;
  end(ended: EndedRequest, body: BodyTimes | null): void;
}

export interface Traces {
  /** Starts a span and decides whether it is sampled. Ending a span that is not sampled costs nothing. */
  begin(parent: TraceParent | null, traceState: string | undefined, method: string): RequestSpan;
  /** Sends the remaining spans, within a short timeout. */
  close(): Promise<void>;
}

export interface TraceSettings {
  readonly version: string;
  readonly env: { readonly [name: string]: string | undefined };
  readonly isTls: boolean;
  warn(summary: LogFields, message: string): void;
}
