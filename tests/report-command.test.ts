// `headgate report recommendations` and the client's `recommendationsReport`, on a real server.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { HeadgateClient, type RecommendationsReport, RefusedError } from '@headgate/client/client.ts';
import { testDatabases } from '../server/store/test-databases.ts';
import { commandLine } from './harness/headgate.ts';
import { type LoadFolder, loadFolder, type Ran, runWithin } from './harness/loading.ts';
import { rejected } from './harness/rejected.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { hasProgram } from './harness/waiting.ts';

const withoutScript = (await hasProgram('script')) ? false : 'this machine has no script';
const period = ['--from', '2026-03-02', '--to', '2026-03-08'];

describe('headgate report recommendations', () => {
  const running = runningHeadgate(testDatabases[0]!);

  async function newSetting(
    t: TestContext,
    scopes?: readonly string[],
  ): Promise<{ folder: LoadFolder; client: HeadgateClient; report(...args: string[]): Promise<Ran> }> {
    const { key } = await running.headgate.newKey(undefined, scopes);
    const { url } = running.headgate;
    const folder = await loadFolder(t, { HEADGATE_URL: url, HEADGATE_KEY: key });
    const client = new HeadgateClient({ url, apiKey: key });
    return {
      folder,
      client,
      report: (...args) => runWithin(folder.environment, 'report', 'recommendations', ...args),
    };
  }

  /** Uploads one recommended touch with a purchase, and one organic touch without. */
  async function uploadTouches(client: HeadgateClient): Promise<void> {
    const [student, shop] = [randomUUID(), randomUUID()];
    await client.upload('customers', [{ customer_id: student, user_id: randomUUID(), region: 'GB' }]);
    await client.upload('shops', [{ shop_id: shop, name: 'Corner Books', region: 'GB' }]);
    const touch = {
      interaction_type: 'PAGE_VIEW',
      item_type: 'SHOP',
      item_id: shop,
      student_id: student,
    } as const;
    await client.upload('interactions', [
      {
        ...touch,
        event_timestamp: '2026-03-02T10:00:00Z',
        source: 'SERVICE',
        recommendation_id: randomUUID(),
        platform: 'IOS',
      },
      { ...touch, event_timestamp: '2026-03-05T10:00:00Z' },
    ]);
    const purchase = {
      transaction_id: randomUUID(),
      shop_id: shop,
      student_id: student,
      region: 'GB',
      created: '2026-03-02T12:00:00Z',
      amount: 12.5,
      savings: 2,
    };
    await client.upload('transactions', [purchase]);
  }

  /** Runs it on a terminal of the width. */
  async function onTerminal(folder: LoadFolder, width: number, ...args: string[]): Promise<string[]> {
    const command = commandLine(['report', 'recommendations', ...args]).join(' ');
    const { stdout } = await promisify(execFile)(
      'script',
      ['-qec', `stty cols ${width}; ${command}`, '/dev/null'],
      { env: { ...process.env, ...folder.environment } },
    );
    return stdout.trimEnd().split('\r\n');
  }

  test('the client resolves to the report, which --json prints as it is', async (t) => {
    const { client, report } = await newSetting(t);
    await uploadTouches(client);
    const whole = await client.recommendationsReport({ from: '2026-03-02', to: '2026-03-08' });
    const { from, to, by, windows_days, groups, holdout } = whole;
    assert.deepEqual(
      { from, to, by, windows_days, groups: groups.length, holdout },
      {
        from: '2026-03-02',
        to: '2026-03-08',
        by: null,
        windows_days: [1, 7, 30],
        groups: 1,
        holdout: null,
      },
    );
    assert.equal(whole.coverage.interactions.used, 2);
    assert.equal(groups[0]!.recommended.windows[1].amount, 12.5);
    assert.equal(groups[0]!.organic.windows[30].assisted_purchases, 0);
    const grouped = await client.recommendationsReport({
      from: '2026-03-02',
      to: '2026-03-08',
      by: 'platform',
    });
    assert.deepEqual(new Set(grouped.groups.map(({ platform }) => platform)), new Set(['IOS', null]));

    const { exitCode, out, err } = await report(...period, '--by', 'platform', '--json');
    assert.deepEqual([exitCode, err], [0, '']);
    const printed = JSON.parse(out) as RecommendationsReport;
    assert.deepEqual({ ...printed, as_of: grouped.as_of }, grouped);
    const usual = JSON.parse((await report('--json')).out) as RecommendationsReport;
    assert.equal(Date.parse(usual.to) - Date.parse(usual.from), 29 * 24 * 60 * 60 * 1000);
  });

  test('prints all columns if there is no terminal', async (t) => {
    const { client, report } = await newSetting(t);
    await uploadTouches(client);
    const { exitCode, out, err } = await report(...period);
    assert.deepEqual([exitCode, err], [0, '']);
    assert.match(out, /^From 2026-03-02 to 2026-03-08, in UTC\. State of the data: /);
    const lines = out.split('\n');
    const at = lines.indexOf('Purchases within 1 day after a touch:');
    assert.match(
      lines[at + 1]!,
      /^INTERACTIONS +EPISODES .* SAVINGS +STRICT +ASSISTED +RATE +95 % INTERVAL$/,
    );
    assert.match(lines[at + 2]!, /^recommended +1 +1 +1 +12\.50 +2\.00 +0 +100\.00 % .* █{24}$/);
    assert.match(lines[at + 3]!, /^organic +1 +0 +0 +0\.00 +0\.00 +0 +0 +0\.00 % .* ░{24}$/);
    assert.doesNotMatch(out, /too narrow/);
  });

  test('fits a terminal of any usual width', { skip: withoutScript }, async (t) => {
    const { client, folder } = await newSetting(t);
    await uploadTouches(client);
    for (const [width, args] of [
      [40, []],
      [60, ['--by', 'interaction_type']],
      [200, ['--by', 'platform']],
    ] as const) {
      const lines = await onTerminal(folder, width, ...period, ...args);
      assert.ok(lines.some((line) => line.includes('█')));
      for (const line of lines) assert.ok([...line].length <= width, `${width}: ${line}`);
      assert.equal(/too\s+narrow/.test(lines.join(' ')), width < 200);
    }
    assert.match((await onTerminal(folder, 3, ...period)).join('\n'), /^recommended +100\.00 %$/m);
  });

  test('a wrong command line is refused with a sentence', async (t) => {
    const { report, folder, client } = await newSetting(t);
    for (const [args, sentence] of [
      [['--from', 'March'], /--from must be a calendar date, YYYY-MM-DD, not "March"/],
      [
        ['--from', '2026-03-02', '--to', '2026-03-01'],
        /--from and --to must be in order: 2026-03-02 is later than 2026-03-01$/m,
      ],
      [['--by', 'week'], /--by must be one of item_type, day, platform, interaction_type, not "week"/],
      [['--hold', 'control'], /there is no option --hold/],
    ] as const) {
      const { exitCode, out, err } = await report(...args);
      assert.deepEqual([exitCode, out], [2, ''], err);
      assert.match(err, sentence);
    }
    const unknown = await report('--holdout', 'nobody');
    assert.deepEqual([unknown.exitCode, unknown.out], [1, '']);
    assert.match(unknown.err, /holdout must be the name of a segment; there is none named "nobody"/);
    const bare = await runWithin(folder.environment, 'report');
    assert.deepEqual(
      [bare.exitCode, bare.err],
      [2, 'headgate: report needs one of recommendations after it\n'],
    );
    const help = await runWithin(folder.environment, 'report', '--help');
    assert.deepEqual([help.exitCode, /report recommendations +Show what/.test(help.out)], [0, true]);
    const error = await rejected(client.recommendationsReport({ from: 'March' }), RefusedError);
    assert.match(error.message, /from must be a calendar date/);
  });

  test('a key without the scope is refused', async (t) => {
    const { report } = await newSetting(t, ['data:read']);
    const { exitCode, err } = await report();
    assert.equal(exitCode, 1);
    assert.match(err, /analytics:read.*; ask the operator for a key that has it/);
  });
});
