// Lists every route of the service. app.ts has a handler for each, and the API description a text for each API route;
// a route that lacks either does not compile.

/**
 * `key`: needs a valid API key. `open`: needs no key, but HTTPS. `probe`: needs neither, and is served during a stop
 * too, for health checks.
 */
export type Access = 'key' | 'open' | 'probe';

export interface Route {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly access: Access;
}

export const apiRoutes = {
  uploadRecords: { method: 'POST', path: '/v1/data/:type', access: 'key' },
  listRecords: { method: 'GET', path: '/v1/data/:type', access: 'key' },
  getRecord: { method: 'GET', path: '/v1/data/:type/:id', access: 'key' },
  recordInteraction: { method: 'POST', path: '/user-interactions', access: 'key' },
  listInteractions: { method: 'GET', path: '/user-interactions', access: 'key' },
  getInteraction: { method: 'GET', path: '/user-interactions/:id', access: 'key' },
  getLiveness: { method: 'GET', path: '/livez', access: 'probe' },
  getReadiness: { method: 'GET', path: '/readyz', access: 'probe' },
  getOpenApi: { method: 'GET', path: '/openapi.json', access: 'open' },
} as const satisfies Record<string, Route>;

/** The reference page and the files that it loads. They are for people and not part of the API. */
export const pageRoutes = {
  reference: { method: 'GET', path: '/docs', access: 'open' },
  referenceStyle: { method: 'GET', path: '/docs/reference.css', access: 'open' },
  referenceScript: { method: 'GET', path: '/docs/reference.js', access: 'open' },
} as const satisfies Record<string, Route>;

export const routes = { ...apiRoutes, ...pageRoutes };

export type ApiRouteName = keyof typeof apiRoutes;
export type RouteName = keyof typeof routes;
