// What the routes work with. Built once, in serve.ts.

import type { Gatekeeper } from '../access/gatekeeper.ts';
import type { RateLimiter } from '../access/rate-limit.ts';
import type { LogFields, LogLevel } from '../observe/log.ts';
import type { Observer } from '../observe/observer.ts';
import type { AllowedOrigins } from '../settings.ts';
import type { ApiKey } from '../store/keys.ts';
import type { Store } from '../store/store.ts';
import type { TlsPair } from '../tls.ts';
import type { InFlight } from './in-flight.ts';
import type { IngestThreads } from './ingest-threads.ts';
import type { ApiLimits } from './openapi/limits.ts';
import type { WorkSlots } from './work-slots.ts';

export interface Service {
  readonly store: Store;
  readonly gatekeeper: Gatekeeper;
  readonly rateLimiter: RateLimiter | null;
  readonly ingest: IngestThreads;
  readonly inFlight: InFlight;
  readonly workSlots: WorkSlots;
  readonly listSlots: WorkSlots;
  readonly lookUpSlots: WorkSlots;
  readonly stallTimeoutMs: number;
  readonly maxBodyBytes: number;
  /** What the API description tells of the limits that uploads meet. */
  readonly limits: ApiLimits;
  /** Served over TLS by this process. */
  readonly tls: TlsPair | null;
  readonly behindProxy: boolean;
  readonly allowedOrigins: AllowedOrigins | null;
  /** The time that a stop may take. */
  readonly shutdownTimeoutMs: number;
  readonly observer: Observer;
  log(level: LogLevel, fields: LogFields, message: string): void;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Whose request it is; null only on public paths. */
    caller: ApiKey | null;
  }
  interface FastifyContextConfig {
    /** Answered without a key. Every other path needs one. */
    isPublic?: boolean;
    /** Answered by plain HTTP and while shutting down, too. */
    isProbe?: boolean;
  }
}
