// Starts one PostgreSQL for all test files of a run, before the first of them.

export { shareTestServer as globalSetup } from '../../server/store/postgres/test-server.ts';
