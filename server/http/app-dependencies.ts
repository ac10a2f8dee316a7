// Declares the dependencies that the routes share. They are built once, in serve.ts.

import type { Gatekeeper } from '../access/gatekeeper.ts';
import type { RateLimiter } from '../access/rate-limit.ts';
import type { AnalyticsLink } from '../analytics/analytics-link.ts';
import type { LogFields, LogLevel } from '../observe/log.ts';
import type { Observer } from '../observe/observer.ts';
import type { AllowedOrigins, Settings } from '../settings.ts';
import type { ApiKey } from '../store/keys.ts';
import type { Store } from '../store/store.ts';
import type { TlsPair } from '../tls.ts';
import type { InFlight } from './body/in-flight-bytes.ts';
import type { Followers } from './followers.ts';
import type { IngestPool } from './ingest-pool.ts';
import type { ApiLimits } from './openapi/document.ts';
import type { WorkSlots } from './work-slots.ts';

export interface AppDependencies {
  readonly store: Store;
  readonly gatekeeper: Gatekeeper;
  readonly rateLimiter: RateLimiter | null;
  readonly ingest: IngestPool;
  readonly inFlight: InFlight;
  readonly workSlots: WorkSlots;
  readonly listSlots: WorkSlots;
  readonly lookUpSlots: WorkSlots;
  readonly sqlSlots: WorkSlots;
  readonly followers: Followers;
  /** Null if analytics is switched off. */
  readonly analytics: AnalyticsLink | null;
  readonly sqlLimits: Pick<Settings, 'sqlTimeoutMs' | 'sqlMaxRows'>;
  readonly maxConnections: number;
  readonly stallTimeoutMs: number;
  readonly maxBodyBytes: number;
  /** The limits that the API description states. */
  readonly limits: ApiLimits;
  /** Null if this process does not serve TLS. */
  readonly tls: TlsPair | null;
  readonly behindProxy: boolean;
  readonly allowedOrigins: AllowedOrigins | null;
  /** The longest time that a stop may take. */
  readonly shutdownTimeoutMs: number;
  readonly observer: Observer;
  log(level: LogLevel, fields: LogFields, message: string): void;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The API key of the request; null only on public paths. */
    caller: ApiKey | null;
  }
  interface FastifyContextConfig {
    /** True if the path needs no key. */
    isPublic?: boolean;
    /** True if the path is also served over plain HTTP and while the server is shutting down. */
    isProbe?: boolean;
  }
}
