// Declares the interface of traces, and starts to send them if an environment variable names an endpoint. OpenTelemetry
// is loaded only in that case.

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

const endpoints = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const;

/** Resolves to null if no valid endpoint is set, or if one of OpenTelemetry's own variables switches tracing off. */
export async function openTraces(settings: TraceSettings): Promise<Traces | null> {
  const { env, warn } = settings;
  const variable = endpoints.find((name) => (env[name] ?? '') !== '');
  if (variable === undefined) return null;
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none') return null;
  if (!/^https?:$/.test(URL.parse(env[variable]!)?.protocol ?? '')) {
    warn({}, `${variable} must be a URL such as http://127.0.0.1:4318; no traces are sent`);
    return null;
  }
  const { sendTraces } = await import('./opentelemetry.ts');
  return sendTraces(settings);
}
