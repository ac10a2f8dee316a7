// Lists every route of the service. app.ts must have a handler for each route, and the API description must describe
// each API route. If one of them is missing, the code does not compile.

/**
 * What a request for the route needs.
 * - `key`: HTTPS and a valid API key.
 * - `open`: HTTPS, but no key.
 * - `probe`: neither. Such a route is for health checks, so it is also served while the server stops.
 */
export type Access = 'key' | 'open' | 'probe';

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
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
  listUploads: { method: 'GET', path: '/v1/uploads', access: 'key' },
  getUpload: { method: 'GET', path: '/v1/uploads/:id', access: 'key' },
  listChanges: { method: 'GET', path: '/v1/changes', access: 'key' },
  getUsage: { method: 'GET', path: '/v1/usage', access: 'key' },
  runSql: { method: 'POST', path: '/v1/sql', access: 'key' },
  getRecommendationReport: { method: 'GET', path: '/v1/reports/recommendations', access: 'key' },
  listSegments: { method: 'GET', path: '/v1/segments', access: 'key' },
  previewSegment: { method: 'POST', path: '/v1/segments/preview', access: 'key' },
  getSegment: { method: 'GET', path: '/v1/segments/:name', access: 'key' },
  saveSegment: { method: 'PUT', path: '/v1/segments/:name', access: 'key' },
  deleteSegment: { method: 'DELETE', path: '/v1/segments/:name', access: 'key' },
  refreshSegment: { method: 'POST', path: '/v1/segments/:name/refresh', access: 'key' },
  listMembers: { method: 'GET', path: '/v1/segments/:name/members', access: 'key' },
  explainMember: { method: 'GET', path: '/v1/segments/:name/members/:id', access: 'key' },
  listMemberChanges: { method: 'GET', path: '/v1/segments/:name/changes', access: 'key' },
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
