// A client for tests. It sends any request and returns any response, without checking either.

import type { ProblemCode } from '@headgate/catalogue/problem-codes.ts';
import { sumOf } from '@headgate/client/responses.ts';

export interface Reply<Body = unknown> {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Body;
}

export interface ReportedProblem {
  readonly index: number;
  readonly id: string | null;
  readonly field: string | null;
  readonly code: ProblemCode;
  readonly message: string;
  readonly retryable: boolean;
}

export interface Counts {
  readonly received: number;
  readonly created: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly rejected: number;
}

export interface UploadBody {
  readonly request_id: string;
  /** Absent in dry runs, and if the store failed. */
  readonly seq?: number;
  readonly type: string;
  readonly dry_run?: true;
  readonly batches: readonly {
    readonly batch: number;
    readonly status: number;
    readonly data: {
      readonly status: string;
      readonly type: string;
      readonly message: string;
      readonly request_id: string;
      readonly batch_id: string;
      readonly error: string | null;
      readonly counts: Counts;
      readonly errors: readonly ReportedProblem[];
      readonly errors_omitted?: number;
      readonly warnings: readonly {
        readonly code: string;
        readonly field: string | null;
        readonly count: number;
      }[];
    };
  }[];
}

export interface RefusalBody {
  readonly error: string;
  readonly message: string;
  readonly request_id: string;
  readonly details?: readonly {
    readonly field: string | null;
    readonly code: ProblemCode;
    readonly message: string;
  }[];
}

export interface RecordsBody {
  readonly type: string;
  readonly records: readonly Record<string, unknown>[];
  readonly next_cursor: string | null;
}

export interface InteractionsBody {
  readonly interactions: readonly Record<string, unknown>[];
  readonly next_cursor: string | null;
}

export interface RequestOptions {
  readonly method?: string;
  /** An object is sent as JSON; text and bytes are sent unchanged. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Api {
  request<Body = RefusalBody>(path: string, options?: RequestOptions): Promise<Reply<Body>>;
  upload(
    type: string,
    records: readonly unknown[],
    options?: { readonly query?: string; readonly headers?: Readonly<Record<string, string>> },
  ): Promise<Reply<UploadBody>>;
  /** Records one interaction. */
  record<Body = Record<string, unknown>>(
    interaction: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Reply<Body>>;
  read(type: string, id: string): Promise<Reply<Record<string, unknown>>>;
  list(type: string, query?: string): Promise<Reply<RecordsBody>>;
  interactions(query?: string): Promise<Reply<InteractionsBody>>;
}

export function apiOf(url: string, key: string | null): Api {
  const request = async <Body>(path: string, { method, body, headers }: RequestOptions = {}) => {
    const isRaw = typeof body === 'string' || body instanceof Uint8Array;
    const response = await fetch(url + path, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        ...(key === null ? {} : { Authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined
        ? {}
        : { body: (isRaw ? body : JSON.stringify(body)) as NonNullable<RequestInit['body']> }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false;
    const parsed = isJson && text !== '' ? JSON.parse(text) : undefined;
    return { status: response.status, headers: response.headers, text, body: parsed as Body };
  };
  return {
    request,
    upload: (type, records, { query = '', headers = {} } = {}) =>
      request<UploadBody>(`/v1/data/${type}${query}`, { body: { records }, headers }),
    record: <Body>(interaction: unknown, headers: Readonly<Record<string, string>> = {}) =>
      request<Body>('/user-interactions', { body: interaction, headers }),
    read: (type, id) => request<Record<string, unknown>>(`/v1/data/${type}/${id}`),
    list: (type, query = '') => request<RecordsBody>(`/v1/data/${type}${query}`),
    interactions: (query = '') => request<InteractionsBody>(`/user-interactions${query}`),
  };
}

/** The counts of all batches together. */
export function totals(body: UploadBody): Counts {
  return sumOf(body.batches.map(({ data }) => data.counts));
}

export function problemsOf(body: UploadBody): readonly ReportedProblem[] {
  return body.batches.flatMap(({ data }) => data.errors);
}
