// What the routes work with. Built once, in serve.ts.

import type { Gatekeeper } from '../access/gatekeeper.ts';
import type { RateLimiter } from '../access/rate-limit.ts';
import type { ApiKey, Store } from '../store/store.ts';
import type { TlsPair } from '../tls.ts';
import type { IngestClient } from './ingest-client.ts';
import type { InteractionClient } from './interaction-client.ts';
import type { InFlight } from './read-body.ts';

export interface Service {
  readonly store: Store;
  readonly gatekeeper: Gatekeeper;
  readonly rateLimiter: RateLimiter | null;
  readonly ingest: IngestClient;
  readonly interactions: InteractionClient;
  readonly inFlight: InFlight;
  readonly maxBodyBytes: number;
  /** Served over TLS by this process. */
  readonly tls: TlsPair | null;
  readonly behindProxy: boolean;
  log(level: 'error' | 'warn' | 'info', facts: Readonly<Record<string, unknown>>, message: string): void;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Whose request it is; null only on public paths. */
    caller: ApiKey | null;
  }
  interface FastifyContextConfig {
    /** Answered without a key. Every other path needs one. */
    isPublic?: boolean;
  }
}
