// The alerts and the dashboard, with a real Prometheus that scrapes a real Headgate.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { freePort } from '../server/store/postgres/test-server.ts';
import { testDatabases } from '../server/store/test-databases.ts';
import { metricsUrl, scrape } from './harness/observed.ts';
import { leastRecord } from './harness/records.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { hasProgram, waitUntil } from './harness/waiting.ts';

const rulesFile = new URL('../deploy/prometheus/alerts.yml', import.meta.url).pathname;
const ruleTests = new URL('../deploy/prometheus/alerts.test.yml', import.meta.url).pathname;
const dashboardFile = new URL('../deploy/grafana/headgate.json', import.meta.url);

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly datasource?: unknown;
  readonly gridPos: { readonly x: number; readonly w: number };
  readonly targets?: readonly { readonly expr: string; readonly datasource: unknown }[];
}

interface Dashboard {
  readonly uid: string;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] };
}

interface QueryAnswer {
  readonly status: string;
  readonly error?: string;
  readonly data: { readonly result: readonly { readonly value: readonly [number, string] }[] };
}

interface RulesAnswer {
  readonly data: {
    readonly groups: readonly {
      readonly rules: readonly { name: string; query: string; health: string }[];
    }[];
  };
}

const chosenDatasource = { type: 'prometheus', uid: `\${datasource}` };

async function readDashboard(): Promise<Dashboard> {
  return JSON.parse(await readFile(dashboardFile, 'utf8')) as Dashboard;
}

const withoutPromtool = !(await hasProgram('promtool')) && 'this machine has no promtool';
const withoutPrometheus = !(await hasProgram('prometheus')) && 'this machine has no prometheus';

describe('the alerts', { skip: withoutPromtool }, () => {
  it('are valid Prometheus rules', async () => {
    const { stdout } = await promisify(execFile)('promtool', ['check', 'rules', rulesFile]);
    assert.match(stdout, /SUCCESS: \d+ rules found/);
  });

  it('fire when they should, and not before', async () => {
    const { stdout } = await promisify(execFile)('promtool', ['test', 'rules', ruleTests]);
    assert.match(stdout, /SUCCESS/);
  });
});

it('the panels of the dashboard have unique ids and use the selected data source', async () => {
  const { uid, panels, templating } = await readDashboard();
  assert.equal(uid, 'headgate');
  assert.ok(templating.list.some(({ name, type }) => name === 'datasource' && type === 'datasource'));
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  assert.deepEqual(
    panels.filter(({ type }) => type === 'row').map(({ title }) => title),
    ['Traffic', 'Outcome', 'Latency', 'Store', 'Process'],
  );
  for (const { type, title, datasource, gridPos, targets } of panels) {
    assert.ok(gridPos.x + gridPos.w <= 24, title);
    if (type === 'row') continue;
    assert.deepEqual(datasource, chosenDatasource, title);
    for (const target of targets!) assert.deepEqual(target.datasource, chosenDatasource, title);
  }
});

describe('a Prometheus that scrapes Headgate', { skip: withoutPrometheus }, () => {
  const server = runningHeadgate(testDatabases[0]!, { HEADGATE_METRICS_PORT: '0' });
  let folder: string;
  let prometheusUrl: string;
  let stop: () => Promise<void>;

  const ask = async <Answer>(path: string): Promise<Answer> =>
    (await (await fetch(prometheusUrl + path)).json()) as Answer;
  const query = (expression: string): Promise<QueryAnswer> =>
    ask(`/api/v1/query?query=${encodeURIComponent(expression)}`);

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'headgate-test-'));
    const config = join(folder, 'prometheus.yml');
    await writeFile(
      config,
      `global: { scrape_interval: 200ms, evaluation_interval: 200ms }
rule_files: ['${rulesFile}']
scrape_configs:
  - job_name: headgate
    static_configs: [{ targets: ['${new URL(metricsUrl(server.headgate)).host}'] }]
`,
    );
    const port = await freePort();
    prometheusUrl = `http://127.0.0.1:${port}`;
    const prometheus = spawn(
      'prometheus',
      [
        `--config.file=${config}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--log.level=error',
      ],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
    const exited = once(prometheus, 'exit');
    stop = async () => {
      prometheus.kill('SIGKILL');
      await exited;
      await rm(folder, { recursive: true, force: true });
    };
    await waitUntil('Prometheus is ready', async () => {
      const answer = await fetch(`${prometheusUrl}/-/ready`).catch(() => null);
      return answer?.status === 200;
    });
  });
  after(() => stop());

  it('has no complaint about the names and types of Headgate’s metrics', async () => {
    const lint = spawn('promtool', ['check', 'metrics'], { stdio: ['pipe', 'ignore', 'pipe'] });
    lint.stdin.end(await (await fetch(metricsUrl(server.headgate))).text());
    const said = (await lint.stderr.toArray()).join('');
    // The names of process metrics are the same for every Node program.
    assert.deepEqual(
      said.split('\n').filter((line) => line !== '' && !line.startsWith('nodejs_')),
      [],
    );
  });

  it('evaluates every expression of the dashboard and the alerts, on existing metrics', async () => {
    const api = await server.newApi();
    const shop = leastRecord('shops');
    const sendSome = async (): Promise<void> => {
      await api.upload('shops', [shop, leastRecord('shops'), leastRecord('shops', { name: 7 })]);
      await api.record({
        interaction_type: 'PAGE_VIEW',
        item_type: 'SHOP',
        item_id: shop.shop_id,
        event_timestamp: 1_714_555_800,
      });
    };
    const valuesOf = async (expression: string): Promise<readonly number[]> => {
      const { status, error, data } = await query(
        expression.replaceAll('$__rate_interval', '1m').replaceAll(/\$(job|instance)/g, '.*'),
      );
      assert.equal(status, 'success', `${expression}: ${error}`);
      return data.result.map(({ value }) => Number(value[1]));
    };
    const { panels } = await readDashboard();
    const shown = panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));
    assert.ok(shown.length > 20);
    const expectData = shown.filter(({ title }) => title !== 'Workers and restarted threads');
    for (const { title, expr } of expectData) {
      await waitUntil(`"${title}" has data`, async () => {
        await sendSome();
        const values = await valuesOf(expr);
        return values.length > 0 && values.every(Number.isFinite);
      });
    }
    const created = await valuesOf('sum(headgate_records_total{outcome="created"})');
    assert.ok(created[0]! > 0);

    let alerts: RulesAnswer['data']['groups'][number]['rules'] = [];
    await waitUntil('all alerts have been evaluated', async () => {
      alerts = (await ask<RulesAnswer>('/api/v1/rules')).data.groups.flatMap(({ rules }) => rules);
      return alerts.length > 0 && alerts.every(({ health }) => health !== 'unknown');
    });
    for (const { name, health } of alerts) assert.equal(health, 'ok', name);

    const served = new Set(
      [...(await scrape(server.headgate)).keys()].map((series) => series.split('{')[0]!),
    );
    const expressions = [...shown.map(({ expr }) => expr), ...alerts.map(({ query: expr }) => expr)];
    for (const expression of expressions) {
      const names = expression.match(/\b(?:headgate|process|nodejs)_\w+/g) ?? ['up'];
      for (const name of names) assert.ok(name === 'up' || served.has(name), `${name} in ${expression}`);
      await valuesOf(expression);
    }
  });
});
