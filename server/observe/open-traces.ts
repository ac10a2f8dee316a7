// Starts to send traces if an environment variable names an endpoint. OpenTelemetry is loaded only in that case.

import type { TraceSettings, Traces } from './traces.ts';

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
