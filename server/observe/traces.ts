// Traces as the rest of the server knows them. OpenTelemetry itself is loaded only where an endpoint is set.

import type { EndedRequest } from './facts.ts';
import type { LogFacts } from './log.ts';
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
  warn(facts: LogFacts, message: string): void;
}

const endpoints = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const;

/** Null where no endpoint is set, or tracing is switched off by one of OpenTelemetry's own variables. */
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
