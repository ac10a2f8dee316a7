// Every route of the service, once. app.ts gives each a handler, the API description gives each of the API's its
// words; a route that lacks either does not compile.

/**
 * `key`: with a good API key only. `open`: without one, but by HTTPS like everything else. `probe`: asked by the
 * machine's own supervisor, at any time and by plain HTTP, too.
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

/** The reference page and what it loads: for people, and so no part of the API. */
export const pageRoutes = {
  reference: { method: 'GET', path: '/docs', access: 'open' },
  referenceStyle: { method: 'GET', path: '/docs/reference.css', access: 'open' },
  referenceScript: { method: 'GET', path: '/docs/reference.js', access: 'open' },
} as const satisfies Record<string, Route>;

export const routes = { ...apiRoutes, ...pageRoutes };

export type ApiRouteName = keyof typeof apiRoutes;
export type RouteName = keyof typeof routes;
