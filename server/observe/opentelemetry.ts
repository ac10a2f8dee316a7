// Turns requests into OpenTelemetry spans and sends them to a collector as OTLP over HTTP. This module is loaded only
// if an endpoint is set. The child spans of a request are made when the request ends, from the recorded times.

import { setTimeout } from 'node:timers/promises';
import {
  type Attributes,
  createTraceState,
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
  serviceInstanceIdDetector,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  type BatchSpanProcessorOptions,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { EndedRequest } from './ended-request.ts';
import { epochMs } from './epoch-ms.ts';
import type { BodyTimes, TraceSettings, Traces } from './traces.ts';

type Env = TraceSettings['env'];

const SERVICE_NAME = 'headgate';
/** The longest time that a stop waits for a collector that does not respond. */
const LAST_SPANS_MS = 2000;
const SAME_WARNING_MS = 60_000;

export function sendTraces({ version, env, isTls, warn }: TraceSettings): Traces {
  const reportTrouble = rarely((cause) =>
    warn({ cause }, 'traces could not be sent, and those spans are lost; is the collector running?'),
  );
  diag.setLogger(
    { error: reportTrouble, warn: reportTrouble, info() {}, debug() {}, verbose() {} },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  if (!['', 'http/json'].includes(protocolOf(env))) {
    warn({}, `traces are sent as http/json, not as ${protocolOf(env)}; the collector's HTTP port takes them`);
  }
  const exporter = new CountingExporter(new OTLPTraceExporter());
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': SERVICE_NAME, 'service.version': version }))
      .merge(detectResources({ detectors: [serviceInstanceIdDetector, envDetector] })),
    sampler: samplerOf(env, warn),
    spanProcessors: [new BatchSpanProcessor({ exporter, ...batching(env) })],
  });
  const tracer = provider.getTracer(SERVICE_NAME, version);
  const scheme = isTls ? 'https' : 'http';

  const addChild = (parent: Span, name: string, startTime: number, endTime: number): void => {
    tracer.startSpan(name, { startTime }, trace.setSpan(ROOT_CONTEXT, parent)).end(endTime);
  };
  const addWork = (span: Span, { summary }: EndedRequest, body: BodyTimes | null): void => {
    if (body !== null) addChild(span, 'read body', body.readAtMs, body.readUntilMs);
    const times = summary?.times;
    if (times === undefined) return;
    const { beganAtMs, writeAskedAtMs, writtenAtMs, endedAtMs } = times;
    const isWritten = writtenAtMs > 0;
    addChild(span, 'ingest', beganAtMs, isWritten ? writeAskedAtMs : endedAtMs);
    if (isWritten) addChild(span, 'store write', writeAskedAtMs, writtenAtMs);
  };

  return {
    begin(parent, traceState, method) {
      const context =
        parent === null
          ? ROOT_CONTEXT
          : trace.setSpanContext(ROOT_CONTEXT, {
              traceId: parent.traceId,
              spanId: parent.spanId,
              traceFlags: parent.isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
              isRemote: true,
              ...(traceState === undefined ? {} : { traceState: createTraceState(traceState) }),
            });
      const startTime = epochMs();
      const span = tracer.startSpan(method, { kind: SpanKind.SERVER, startTime }, context);
      return {
        traceId: span.spanContext().traceId,
        end(ended, body) {
          if (!span.isRecording()) return;
          span.updateName(`${ended.method} ${ended.route}`);
          span.setAttributes({ ...attributesOf(ended), 'url.scheme': scheme });
          if (ended.status !== null && ended.status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
          addWork(span, ended, body);
          span.end(epochMs());
        },
      };
    },
    async close() {
      const { failed } = exporter;
      const cause = await Promise.race([
        provider.shutdown().then(() => null, causeOf),
        setTimeout(LAST_SPANS_MS, `no response within ${LAST_SPANS_MS / 1000} s`),
      ]);
      diag.disable();
      const spans = exporter.unanswered + exporter.failed - failed;
      if (spans > 0) warn({ spans, cause }, 'the last spans could not be sent, and are lost');
    },
  };
}

/** Counts the spans that the collector has not accepted. */
class CountingExporter implements SpanExporter {
  readonly #exporter: SpanExporter;
  unanswered = 0;
  failed = 0;

  constructor(exporter: SpanExporter) {
    this.#exporter = exporter;
  }

  export(...[spans, tell]: Parameters<SpanExporter['export']>): void {
    this.unanswered += spans.length;
    this.#exporter.export(spans, (result) => {
      this.unanswered -= spans.length;
      if (result.error !== undefined) this.failed += spans.length;
      tell(result);
    });
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown();
  }
}

function attributesOf(ended: EndedRequest): Attributes {
  const { method, route, status, isCutOff, requestId, orgId, keyId, type, summary, code, bodyBytes } = ended;
  return {
    'http.request.method': method === 'OTHER' ? '_OTHER' : method,
    'http.route': route,
    'http.request.body.size': bodyBytes,
    ...(status === null ? {} : { 'http.response.status_code': status }),
    ...(status !== null && status >= 500 ? { 'error.type': code ?? String(status) } : {}),
    'headgate.request_id': requestId,
    ...(isCutOff ? { 'headgate.cut_off': true } : {}),
    ...(orgId === null ? {} : { 'headgate.org_id': orgId }),
    ...(keyId === null ? {} : { 'headgate.key_id': keyId }),
    ...(type === null ? {} : { 'headgate.type': type }),
    ...(summary === null ? {} : { 'headgate.outcome': summary.outcome }),
    ...prefixed('headgate.records.', summary?.counts ?? {}),
    ...prefixed('headgate.rejections.', summary?.codes ?? {}),
  };
}

function prefixed(prefix: string, values: object): Attributes {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [prefix + name, value as number]));
}

function protocolOf(env: Env): string {
  return env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? env.OTEL_EXPORTER_OTLP_PROTOCOL ?? '';
}

const samplers: Readonly<Record<string, (ratio: number) => Sampler>> = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: (ratio) => new TraceIdRatioBasedSampler(ratio),
  parentbased_always_on: () => new ParentBasedSampler({ root: new AlwaysOnSampler() }),
  parentbased_always_off: () => new ParentBasedSampler({ root: new AlwaysOffSampler() }),
  parentbased_traceidratio: (ratio) => new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
};
const usualSampler = 'parentbased_always_on';

function samplerOf(env: Env, warn: TraceSettings['warn']): Sampler {
  const name = env.OTEL_TRACES_SAMPLER || usualSampler;
  const ratio = Number(env.OTEL_TRACES_SAMPLER_ARG || 1);
  if (Object.hasOwn(samplers, name) && ratio >= 0 && ratio <= 1) return samplers[name]!(ratio);
  const known = Object.keys(samplers).join(', ');
  warn(
    {},
    `OTEL_TRACES_SAMPLER must be one of ${known}, and OTEL_TRACES_SAMPLER_ARG a number from 0 to 1; ` +
      `${usualSampler} is used`,
  );
  return samplers[usualSampler]!(1);
}

/** Returns the batching options from OpenTelemetry's environment variables. The SDK does not read them itself. */
function batching(env: Env): Omit<BatchSpanProcessorOptions, 'exporter'> {
  const given = {
    scheduledDelayMillis: env.OTEL_BSP_SCHEDULE_DELAY,
    exportTimeoutMillis: env.OTEL_BSP_EXPORT_TIMEOUT,
    maxQueueSize: env.OTEL_BSP_MAX_QUEUE_SIZE,
    maxExportBatchSize: env.OTEL_BSP_MAX_EXPORT_BATCH_SIZE,
  };
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, text]) => {
      const value = Number(text || Number.NaN);
      return Number.isSafeInteger(value) && value > 0 ? [[name, value]] : [];
    }),
  );
}

/** Limits a warning to one per minute, because otherwise every batch that fails could cause a warning. */
function rarely(tell: (cause: string) => void): (message: unknown) => void {
  let toldAtMs = Number.NEGATIVE_INFINITY;
  return (message) => {
    const nowMs = performance.now();
    if (nowMs - toldAtMs < SAME_WARNING_MS) return;
    toldAtMs = nowMs;
    tell(causeOf(message));
  };
}

/** Returns the message of an error. OpenTelemetry reports an error as JSON that contains all its properties. */
function causeOf(told: unknown): string {
  if (told instanceof Error) return told.message;
  const text = String(told);
  if (!text.startsWith('{')) return text;
  try {
    const { message, code, name } = JSON.parse(text) as Partial<Record<string, string>>;
    return message ?? code ?? name ?? text;
  } catch {
    return text;
  }
}
