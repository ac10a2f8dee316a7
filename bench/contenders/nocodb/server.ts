// Starts NocoDB, which npm has only as a library. PEER_FOLDER is where NocoDB is installed, and PORT is the port on the
// loopback address. NocoDB reads its own settings from the environment.

import { createServer, type RequestListener } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';

interface Modules {
  express: () => RequestListener & { use(handler: unknown): void };
  nocodb: { Noco: { init(settings: object, server: unknown, app: unknown): Promise<unknown> } };
}

const { PEER_FOLDER: folder, PORT: port } = process.env;
if (folder === undefined || port === undefined) throw new Error('PEER_FOLDER or PORT is not given');
const load = createRequire(join(folder, 'package.json')) as <Name extends keyof Modules>(
  name: Name,
) => Modules[Name];

const app = load('express')();
const server = createServer(app);
app.use(await load('nocodb').Noco.init({}, server, app));
server.listen(Number(port), '127.0.0.1');
