// Checks the deployment files against the code, and runs the steps that need neither a container engine nor a cluster.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse, parseAllDocuments } from 'yaml';
import { Failure } from '../server/failure.ts';
import { apiRoutes } from '../server/http/routes.ts';
import packageJson from '../server/package.json' with { type: 'json' };
import { readSettings, type Settings, settingDescriptions } from '../server/settings.ts';
import {
  buildStage,
  environmentOf,
  ignoredBy,
  only,
  readDockerfile,
  type Stage,
} from './harness/dockerfile.ts';
import { npmEnvironment } from './harness/npm.ts';
import { exitCodeOf, hasProgram, waitUntil } from './harness/waiting.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const run = promisify(execFile);
const defaults = settingsOf({});
const defaultStopSeconds = defaults.shutdownTimeoutMs / 1000;
const OWNER = '10001';

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** Returns the settings of an environment; throws if Headgate does not know a name or a value. */
function settingsOf(environment: Readonly<Record<string, string>>): Settings {
  const known = settingDescriptions.map(({ env }) => env);
  for (const name of Object.keys(environment)) {
    if (name.startsWith('HEADGATE_')) assert.ok(known.includes(name), `${name} is no setting`);
  }
  const settings = readSettings(environment);
  assert.ok(!(settings instanceof Failure), settings instanceof Failure ? settings.reason : '');
  return settings;
}

function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-deploy-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

describe('Dockerfile', () => {
  const [build, image] = readDockerfile(join(root, 'Dockerfile')) as [Stage, Stage];

  test('runs on the Node version of the package, as an unprivileged user, on its own volume', () => {
    const major = /\d+/.exec(packageJson.engines.node)![0];
    for (const { from } of [build, image]) assert.equal(from, `node:${major}-slim`);
    assert.equal(only(image, 'USER'), `${OWNER}:${OWNER}`);
    assert.equal(only(image, 'VOLUME'), '/data');
    assert.match(only(image, 'RUN'), new RegExp(`install -d -o ${OWNER} -g ${OWNER} -m 700 /data$`));
    const environment = environmentOf(image);
    const settings = settingsOf({ ...environment, HEADGATE_BEHIND_PROXY: 'true' });
    assert.equal(settings.database, 'sqlite:/data/headgate.db');
    // With PostgreSQL, the copies for queries would otherwise be in a folder that only root may write to.
    assert.equal(settings.analyticsDir, '/data/analytics');
    assert.equal(only(image, 'EXPOSE'), String(settings.port));
    assert.equal(only(image, 'STOPSIGNAL'), 'SIGTERM');
  });

  test('without a TLS setting the image names the possible ones and does not start', () => {
    const problem = readSettings(environmentOf(image));
    assert.ok(problem instanceof Failure);
    assert.match(problem.reason, /HEADGATE_TLS_CERT and HEADGATE_TLS_KEY, or set HEADGATE_BEHIND_PROXY=true/);
  });

  test('its steps build an image that serves, passes its health check, and stops at SIGTERM', async (t) => {
    const folder = newFolder(t);
    const roots = { build: join(folder, 'build'), image: join(folder, 'image') };
    mkdirSync(join(roots.image, 'usr/local/bin'), { recursive: true });
    const building = {
      context: root,
      isIgnored: ignoredBy(join(root, '.dockerignore')),
      roots,
      environment: npmEnvironment,
    };
    await buildStage(build, roots.build, building);
    await buildStage(withoutOwner(image), roots.image, building);
    assert.deepEqual(readdirSync(join(roots.image, 'app/server')).sort(), [
      'LICENSE',
      'bin',
      'dist',
      'package.json',
    ]);
    assert.deepEqual(
      readdirSync(join(roots.image, 'app/node_modules')).filter((name) =>
        /headgate|typescript|biome/.test(name),
      ),
      [],
    );

    const environment = {
      PATH: [join(roots.image, 'usr/local/bin'), npmEnvironment.PATH].join(delimiter),
      ...environmentOf(image),
      HEADGATE_DATABASE: environmentOf(image).HEADGATE_DATABASE!.replace('/data', join(roots.image, 'data')),
      HEADGATE_PORT: '0',
      HEADGATE_BEHIND_PROXY: 'true',
    };
    const [program, ...args] = [...wordsOf(only(image, 'ENTRYPOINT')), ...wordsOf(only(image, 'CMD'))];
    const server = spawn(program!, args, { env: environment, stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => server.kill('SIGKILL'));
    let output = '';
    server.stdout.on('data', (chunk: Buffer) => {
      output += chunk;
    });
    const port = (): string | undefined => /^listening on http:\/\/0\.0\.0\.0:(\d+)$/m.exec(output)?.[1];
    await waitUntil('the server answers', () => port() !== undefined || server.exitCode !== null);
    const check = only(image, 'HEALTHCHECK').split(' CMD ');
    const [checker, ...checkArgs] = wordsOf(check[1]!);
    const { stdout } = await run(checker!, checkArgs, { env: { ...environment, HEADGATE_PORT: port()! } });
    assert.equal(stdout, 'ready\n');

    const statusOf = async (headers: Record<string, string>): Promise<number> => {
      const response = await fetch(`http://127.0.0.1:${port()}/v1/data/shops`, { headers });
      await response.arrayBuffer();
      return response.status;
    };
    assert.deepEqual([await statusOf({}), await statusOf({ 'X-Forwarded-Proto': 'https' })], [403, 401]);
    server.kill('SIGTERM');
    assert.equal(await exitCodeOf(server), 0);
    await assert.rejects(run(checker!, checkArgs, { env: { ...environment, HEADGATE_PORT: port()! } }), {
      code: 1,
    });
  });

  /** Removes the owner from the instructions, because only root may give a folder to another user. */
  function withoutOwner(stage: Stage): Stage {
    const instructions = stage.instructions.map(({ word, text }) => ({
      word,
      text: text.replace(`-o ${OWNER} -g ${OWNER} `, ''),
    }));
    return { ...stage, instructions };
  }
});

function wordsOf(execForm: string): readonly string[] {
  return JSON.parse(execForm) as string[];
}

describe('compose.yaml', () => {
  interface Service {
    readonly image: string;
    readonly environment: Readonly<Record<string, string>>;
    readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
    readonly ports?: readonly string[];
    readonly volumes?: readonly string[];
    readonly stop_grace_period?: string;
    readonly healthcheck?: { readonly test: readonly string[] };
  }
  const { services, volumes } = parse(read('compose.yaml')) as {
    readonly services: Readonly<Record<'headgate' | 'postgres' | 'caddy', Service>>;
    readonly volumes: Readonly<Record<string, null>>;
  };
  const [, image] = readDockerfile(join(root, 'Dockerfile')) as [Stage, Stage];

  test('the settings of Headgate are valid and name the database of the other service', () => {
    const { environment, stop_grace_period: grace } = services.headgate;
    const settings = settingsOf({ ...environmentOf(image), ...environment });
    assert.equal(settings.behindProxy, true);
    const { POSTGRES_USER: user, POSTGRES_DB: name } = services.postgres.environment;
    assert.equal(settings.database, `postgres://${user}:\${POSTGRES_PASSWORD}@postgres/${name}`);
    assert.ok(Number.parseInt(grace!, 10) > defaultStopSeconds);
  });

  test('the password is required, and only HTTPS is published, on this machine only', () => {
    assert.match(services.postgres.environment.POSTGRES_PASSWORD!, /^\$\{POSTGRES_PASSWORD:\?.+\}$/);
    assert.equal(services.headgate.ports, undefined);
    assert.equal(services.postgres.ports, undefined);
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Compose fills it in.
    assert.deepEqual(services.caddy.ports, ['${BIND:-127.0.0.1}:${HTTPS_PORT:-8443}:443']);
  });

  test('each service waits until those it needs are healthy, and stored data has a volume', () => {
    assert.equal(services.headgate.depends_on?.postgres?.condition, 'service_healthy');
    assert.equal(services.caddy.depends_on?.headgate?.condition, 'service_healthy');
    assert.ok(services.postgres.healthcheck?.test.includes('pg_isready'));
    assert.deepEqual(Object.keys(volumes), ['postgres', 'caddy']);
    for (const [service, path] of [
      ['postgres', '/var/lib/postgresql'],
      ['caddy', '/data'],
    ] as const) {
      assert.ok(services[service].volumes?.includes(`${service}:${path}`));
    }
  });

  test('Caddy forwards everything to the port that Headgate listens on', () => {
    const caddyfile = services.caddy.volumes!.find((volume) => volume.endsWith(':/etc/caddy/Caddyfile:ro'))!;
    const text = read(caddyfile.split(':')[0]!);
    const { port } = settingsOf({ ...environmentOf(image), ...services.headgate.environment });
    assert.match(text, new RegExp(`^\\{\\$SITE\\} \\{\\n\\treverse_proxy headgate:${port}\\n\\}$`, 'm'));
    assert.ok('SITE' in services.caddy.environment);
  });
});

describe('the units of systemd', async () => {
  const units = readdirSync(join(root, 'deploy/systemd'));
  const skip = !(await hasProgram('systemd-analyze')) && 'this machine has no systemd-analyze';
  /** Returns a unit's settings. Repeated ones are joined by a line break. */
  const unitOf = (name: string): Readonly<Record<string, string>> => {
    const found: Record<string, string> = {};
    for (const [, key, value] of read(`deploy/systemd/${name}`).matchAll(/^(\w+)=(.*)$/gm)) {
      found[key!] = key! in found ? `${found[key!]}\n${value}` : value!;
    }
    return found;
  };
  const environmentIn = (name: string): Record<string, string> =>
    Object.fromEntries(
      unitOf(name)
        .Environment!.split('\n')
        .map((pair) => pair.split(/=(.*)/s).slice(0, 2) as [string, string]),
    );

  test('are accepted by systemd', { skip }, async (t) => {
    const folder = newFolder(t);
    // systemd requires that the program exists.
    const program = join(folder, 'headgate');
    writeFileSync(program, '#!/bin/sh\n');
    chmodSync(program, 0o755);
    for (const unit of units) {
      writeFileSync(
        join(folder, unit),
        read(`deploy/systemd/${unit}`).replaceAll('/usr/local/bin/headgate', program),
      );
    }
    const paths = units.map((unit) => join(folder, unit));
    const { stdout, stderr } = await run('systemd-analyze', ['verify', '--man=no', ...paths]);
    assert.equal(stdout + stderr, '');
  });

  for (const service of units.filter((unit) => unit.endsWith('.service'))) {
    test(`${service} is isolated from the rest of the machine`, { skip }, async (t) => {
      const folder = newFolder(t);
      cpSync(join(root, 'deploy/systemd', service), join(folder, service));
      // In tenths: 1.5 of 10, where 10 is a service without any protection.
      const options = ['--no-pager', '--offline=true', '--threshold=15'];
      await run('systemd-analyze', ['security', ...options, join(folder, service)]);
    });

    test(`${service} keeps its data in the folder that it is given`, () => {
      const { StateDirectory: folders } = unitOf(service);
      assert.equal(settingsOf(environmentIn(service)).database, 'sqlite:/var/lib/headgate/headgate.db');
      assert.ok(folders!.split(' ').includes('headgate'));
    });
  }

  test('systemd waits as long as a stop may take, and does not retry a wrong setting', () => {
    const {
      TimeoutStopSec: stopSeconds,
      RestartPreventExitStatus: misused,
      ExecStart: start,
    } = unitOf('headgate.service');
    assert.ok(Number(stopSeconds) > defaultStopSeconds);
    assert.equal(misused, '2');
    assert.equal(start, '/usr/local/bin/headgate serve');
  });

  test('the timer makes a backup every day', async (t) => {
    const folder = newFolder(t);
    const { ExecStart: command, StateDirectory: folders } = unitOf('headgate-backup.service');
    assert.ok(folders!.split(' ').includes('headgate-backups'));
    const script = /^\/bin\/sh -c '(.+)'$/
      .exec(command!)![1]!
      .replaceAll('%%', '%')
      .replace('/usr/local/bin/headgate', join(root, 'server/bin/headgate.js'))
      .replace('/var/lib/headgate-backups', folder);
    const environment = { ...environmentIn('headgate-backup.service'), PATH: npmEnvironment.PATH! };
    const HEADGATE_DATABASE = join(folder, 'headgate.db');
    const env = { ...environment, HEADGATE_DATABASE };
    await run(join(root, 'server/bin/headgate.js'), ['orgs', 'create', 'acme'], { env });
    for (let times = 1; times <= 2; times++) await run('/bin/sh', ['-c', script], { env });
    assert.match(
      readdirSync(folder).sort().join(' '),
      /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)\.db( [A-Z]\w\w\.db)? headgate\.db$/,
    );
  });
});

describe('the manifest for Kubernetes', () => {
  interface Probe {
    readonly httpGet: { readonly path: string; readonly port: string };
  }
  interface Container {
    readonly image: string;
    readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
    readonly env: readonly {
      readonly name: string;
      readonly value?: string;
      readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string } };
    }[];
    readonly startupProbe: Probe;
    readonly livenessProbe: Probe;
    readonly readinessProbe: Probe;
    readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
    readonly resources: { readonly limits: { readonly memory: string } };
    readonly lifecycle: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } };
    readonly securityContext: Readonly<Record<string, unknown>>;
  }
  const documents = parseAllDocuments(read('deploy/kubernetes/headgate.yaml'));
  const objects = documents.map((document) => {
    assert.deepEqual(document.errors, []);
    return document.toJS();
  });
  const ofKind = (kind: string) => objects.find((object) => object.kind === kind);
  const { replicas, selector, strategy, template } = ofKind('Deployment').spec;
  const container = template.spec.containers[0] as Container;
  const portNamed = (name: string): number =>
    container.ports.find((port) => port.name === name)!.containerPort;
  const [, image] = readDockerfile(join(root, 'Dockerfile')) as [Stage, Stage];

  test('the settings of Headgate are valid, and the secret names the database', () => {
    const database = container.env.find(({ name }) => name === 'HEADGATE_DATABASE')!;
    assert.deepEqual(database.valueFrom?.secretKeyRef, { name: 'headgate', key: 'database' });
    const environment = Object.fromEntries(
      container.env.map(({ name, value }) => [name, value ?? 'postgres://headgate@db.internal/headgate']),
    );
    const settings = settingsOf({ ...environmentOf(image), ...environment });
    assert.equal(settings.behindProxy, true);
    assert.equal(settings.port, portNamed('http'));
    assert.equal(settings.metricsPort, portNamed('metrics'));
    assert.equal(settings.metricsHost, '0.0.0.0');
    assert.equal(template.metadata.annotations['prometheus.io/port'], String(settings.metricsPort));
    assert.ok(container.image.endsWith(`/headgate:${packageJson.version}`));
  });

  test('the probes use paths that need no key', () => {
    const { startupProbe, livenessProbe, readinessProbe } = container;
    assert.deepEqual(
      [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet),
      [apiRoutes.getLiveness, apiRoutes.getLiveness, apiRoutes.getReadiness].map(({ path }) => ({
        path,
        port: 'http',
      })),
    );
  });

  test('a pod runs as the user of the image, without privileges', () => {
    const { runAsUser, runAsGroup, runAsNonRoot } = template.spec.securityContext;
    assert.deepEqual([`${runAsUser}:${runAsGroup}`, runAsNonRoot], [only(image, 'USER'), true]);
    assert.deepEqual(container.securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });

  test('a pod can write to the volume of the image, and has enough memory for uploads and queries', () => {
    const volume = only(image, 'VOLUME');
    const mount = container.volumeMounts.find(({ mountPath }) => mountPath === volume)!;
    assert.deepEqual(template.spec.volumes, [{ name: mount.name, emptyDir: {} }]);
    assert.equal(template.spec.securityContext.fsGroup, template.spec.securityContext.runAsGroup);
    const limitGib = Number(/^(\d+)Gi$/.exec(container.resources.limits.memory)![1]);
    assert.equal(limitGib, 2 + defaults.analyticsMemoryBytes / 1024 ** 3);
  });

  test('an update removes no pod before another is ready, and lets each finish its requests', () => {
    assert.deepEqual(strategy.rollingUpdate, { maxSurge: 1, maxUnavailable: 0 });
    const preStopSeconds = Number(container.lifecycle.preStop.exec.command[1]);
    assert.ok(template.spec.terminationGracePeriodSeconds > preStopSeconds + defaultStopSeconds);
  });

  test('the service, the ingress and the budget select the pods of the deployment', () => {
    const labels = template.metadata.labels;
    assert.deepEqual(selector.matchLabels, labels);
    assert.deepEqual(ofKind('Service').spec.selector, labels);
    assert.deepEqual(ofKind('PodDisruptionBudget').spec.selector.matchLabels, labels);
    assert.ok(ofKind('PodDisruptionBudget').spec.maxUnavailable < replicas);
    const [port] = ofKind('Service').spec.ports;
    assert.equal(port.targetPort, 'http');
    const [path] = ofKind('Ingress').spec.rules[0].http.paths;
    assert.deepEqual(path.backend.service, {
      name: ofKind('Service').metadata.name,
      port: { name: port.name },
    });
    const bodySize = ofKind('Ingress').metadata.annotations['nginx.ingress.kubernetes.io/proxy-body-size'];
    assert.equal(Number.parseInt(bodySize, 10) * 1024 * 1024, defaults.maxBodyBytes);
  });
});
