// Reads the header traceparent, which names the trace that a request belongs to (W3C Trace Context).

export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** The form of the header. Later versions of the standard may append further parts, but keep the first four. */
const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const SAMPLED_FLAG = 1;

/** Returns null if the header is missing or malformed. The standard says that a malformed header is ignored. */
export function readTraceParent(header: string | undefined): TraceParent | null {
  if (header === undefined) return null;
  const parts = form.exec(header.trim());
  if (parts === null) return null;
  const [, version, traceId = '', spanId = '', flags = '', more] = parts;
  const isForbidden = version === 'ff' || (version === '00' && more !== undefined);
  if (isForbidden || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED_FLAG) !== 0 };
}
