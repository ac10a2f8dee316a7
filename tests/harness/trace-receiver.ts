// A collector for tests: receives OTLP as JSON over real HTTP and keeps every span.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly name: string;
  readonly kind: number;
  readonly traceState: string | null;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly isError: boolean;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** The resource attributes of the process that sent it. */
  readonly resource: Readonly<Record<string, unknown>>;
}

export interface TraceReceiver {
  readonly url: string;
  spans(): readonly ReceivedSpan[];
  /** The headers of each request that brought spans. */
  requests(): readonly Readonly<Record<string, unknown>>[];
  close(): Promise<void>;
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly traceState?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status?: { readonly code?: number };
  readonly attributes: readonly Attribute[];
}

interface Otlp {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

const ERROR_STATUS = 2;

/** `status` is the status of its responses; it keeps the spans in any case. */
export async function startTraceReceiver(status = 200): Promise<TraceReceiver> {
  const received: ReceivedSpan[] = [];
  const requests: Readonly<Record<string, unknown>>[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    requests.push({ path: request.url, ...request.headers });
    received.push(...spansOf(JSON.parse(Buffer.concat(chunks).toString()) as Otlp));
    response.writeHead(status, { 'Content-Type': 'application/json' }).end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: () => received,
    requests: () => requests,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

function spansOf({ resourceSpans }: Otlp): readonly ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans
      .flatMap(({ spans }) => spans)
      .map((span) => ({
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId ?? null,
        name: span.name,
        kind: span.kind,
        traceState: span.traceState ?? null,
        startNs: BigInt(span.startTimeUnixNano),
        endNs: BigInt(span.endTimeUnixNano),
        isError: span.status?.code === ERROR_STATUS,
        attributes: valuesOf(span.attributes),
        resource: valuesOf(resource.attributes),
      })),
  );
}

function valuesOf(attributes: readonly Attribute[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const [kind, plain] = Object.entries(value)[0]!;
      return [key, kind === 'intValue' ? Number(plain) : plain];
    }),
  );
}
