// The headers with which a caller says of which trace its request is a part (W3C Trace Context).

export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** Later versions may add further parts; what is known of them stays where it is. */
const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const SAMPLED_FLAG = 1;

/** Null where there is none, or one that must be ignored because it is malformed. */
export function readTraceParent(header: string | undefined): TraceParent | null {
  if (header === undefined) return null;
  const parts = form.exec(header.trim());
  if (parts === null) return null;
  const [, version, traceId, spanId, flags, more] = parts as unknown as [
    string,
    string,
    string,
    string,
    string,
    string?,
  ];
  const isForbidden = version === 'ff' || (version === '00' && more !== undefined);
  if (isForbidden || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED_FLAG) !== 0 };
}
