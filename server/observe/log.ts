// Writes the log: one line for each request, and one for each event that matters to an operator. The lines are JSON for
// programs, or have a short form for people at a terminal. The JSON of requests is concatenated by hand, to save time
// on the serving thread.

import type { EndedRequest } from './ended-request.ts';
import { LARGE_WRITE_BYTES, type LogSink, openLogSink, WHOLE_ON_A_PIPE_BYTES } from './log-sink.ts';
import { prettyEvent, prettyRequest } from './pretty.ts';

export const logLevels = ['silent', 'error', 'warn', 'info', 'debug'] as const;
export type LogThreshold = (typeof logLevels)[number];
export type LogLevel = Exclude<LogThreshold, 'silent'>;

export const logFormats = ['auto', 'json', 'pretty'] as const;
export type LogFormat = (typeof logFormats)[number];

export type LogFields = Readonly<Record<string, unknown>>;

export interface Log {
  write(level: LogLevel, fields: LogFields, message: string): void;
  request(ended: EndedRequest): void;
  /** False if the log level excludes all request lines. */
  readonly hasRequests: boolean;
  close(): Promise<void>;
}

export interface LogOptions {
  readonly threshold: LogThreshold;
  readonly format: LogFormat;
  /** Whether the descriptor is a terminal. */
  readonly isTerminal: boolean;
  /** Whether other processes write to the same descriptor. */
  readonly isShared: boolean;
  readonly env: { readonly [name: string]: string | undefined };
}

const STANDARD_ERROR = 2;

export function openLog({ threshold, format, isTerminal, isShared, env }: LogOptions): Log {
  const isPretty = format === 'pretty' || (format === 'auto' && isTerminal);
  const hasColours = isTerminal && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb';
  const isOn = (level: LogLevel): boolean => logLevels.indexOf(level) <= logLevels.indexOf(threshold);
  const lineOf = (level: LogLevel, fields: LogFields, message: string): string =>
    isPretty
      ? prettyEvent(localTime(), level, fields, message, hasColours)
      : `${JSON.stringify({ time: utcTime(), level, ...fields, message }, plainError)}\n`;
  const requestLine = isPretty
    ? (ended: EndedRequest) => prettyRequest(localTime(), ended, hasColours)
    : jsonRequest;

  if (threshold === 'silent') {
    return { write() {}, request() {}, hasRequests: false, close: () => Promise.resolve() };
  }
  const sink: LogSink = openLogSink(
    STANDARD_ERROR,
    isShared ? WHOLE_ON_A_PIPE_BYTES : LARGE_WRITE_BYTES,
    (dropped) =>
      lineOf('warn', { dropped }, 'log lines were dropped: the reader was too slow, or the disk is full'),
  );
  return {
    hasRequests: isOn('warn'),
    write(level, fields, message) {
      if (!isOn(level)) return;
      sink.write(lineOf(level, fields, message));
      if (level === 'error') sink.hurry();
    },
    request(ended) {
      if (isOn(levelOf(ended))) sink.write(requestLine(ended));
    },
    close: () => sink.close(),
  };
}

/** Returns the level of a request's line: `debug` for successful health checks, because they come every few seconds. */
function levelOf({ status, isProbe }: EndedRequest): LogLevel {
  if (status !== null && status >= 500) return 'warn';
  return isProbe ? 'debug' : 'info';
}

/**
 * Returns the line of a request as JSON. No value needs escaping, because all values are numbers, ids in a fixed form,
 * or words from fixed lists.
 */
function jsonRequest(ended: EndedRequest): string {
  const { requestId, traceId, method, route, status, isCutOff, orgId, keyId, type, summary, code } = ended;
  let line = `{"time":"${utcTime()}","level":"${levelOf(ended)}","request_id":"${requestId}"`;
  if (traceId !== null) line += `,"trace_id":"${traceId}"`;
  line += `,"method":"${method}","route":"${route}","status":${status}`;
  if (isCutOff) line += ',"cut_off":true';
  if (orgId !== null) line += `,"org_id":"${orgId}","key_id":"${keyId}"`;
  if (type !== null) line += `,"type":"${type}"`;
  if (summary !== null) {
    line += `,"outcome":"${summary.outcome}"`;
    if (summary.counts !== undefined) line += `,"counts":${JSON.stringify(summary.counts)}`;
    if (summary.codes !== undefined) line += `,"codes":${JSON.stringify(summary.codes)}`;
  } else if (code !== null) {
    line += `,"code":"${code}"`;
  }
  return `${line},"bytes":${ended.bodyBytes},"duration_ms":${ended.durationMs.toFixed(2)}}\n`;
}

/** Converts an error into a plain object, because JSON.stringify leaves out the properties of errors. */
function plainError(_name: string, value: unknown): unknown {
  return value instanceof Error ? { name: value.name, message: value.message, stack: value.stack } : value;
}

let shownMs = 0;
let shownUtc = '';

/** Returns the current time as text. The text is cached, because many lines are written in the same millisecond. */
function utcTime(): string {
  const nowMs = Date.now();
  if (nowMs !== shownMs) {
    shownMs = nowMs;
    shownUtc = new Date(nowMs).toISOString();
  }
  return shownUtc;
}

function localTime(): string {
  const now = new Date();
  return `${now.toTimeString().slice(0, 'hh:mm:ss'.length)}.${String(now.getMilliseconds()).padStart(3, '0')}`;
}
