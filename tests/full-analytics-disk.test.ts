// The replica of an organisation on a full disk: queries fail with the reason, uploads are not affected, and with more
// space the replica is complete.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Api, apiOf, type RefusalBody, totals } from './harness/api.ts';
import { type Headgate, startHeadgate } from './harness/headgate.ts';
import { describeWithDisks } from './harness/mount-namespace.ts';
import { leastRecord } from './harness/records.ts';

const COURSES_PER_UPLOAD = 5000;
/** After how many uploads the replica does not fit on the disk. */
const disks = [
  // Here a commit fails.
  { mebibytes: 3, uploads: 3 },
  // Here usually a checkpoint fails. After that, DuckDB refuses everything until the file is opened again.
  { mebibytes: 28, uploads: 14 },
] as const;

await describeWithDisks('a replica on a full disk', import.meta.url, (folder) => {
  for (const { mebibytes, uploads } of disks) {
    describe(`of ${mebibytes} MiB`, () => {
      const analytics = join(folder, `analytics-${mebibytes}`);
      let headgate: Headgate;
      let api: Api;

      const resize = (toMebibytes: number, flags: string): void => {
        const options = `${flags}size=${toMebibytes}m`;
        execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'headgate-test', analytics]);
      };
      const upload = async (): Promise<number> => {
        // Random texts, because DuckDB compresses others.
        const courses = Array.from({ length: COURSES_PER_UPLOAD }, () =>
          leastRecord('courses', { name: Array.from({ length: 20 }, () => Math.random()).join() }),
        );
        return totals((await api.upload('courses', courses)).body).created;
      };
      const countCourses = () =>
        api.request<RefusalBody & { rows: unknown[][]; as_of: { complete: boolean } }>('/v1/sql', {
          body: { sql: 'SELECT count(*)::INTEGER FROM courses' },
        });

      before(async () => {
        mkdirSync(analytics);
        resize(mebibytes, '');
        headgate = await startHeadgate(`sqlite:${join(folder, `headgate-${mebibytes}.db`)}`, {
          HEADGATE_ANALYTICS_DIR: analytics,
        });
        api = apiOf(headgate.url, (await headgate.newKey()).key);
        for (let uploaded = 0; uploaded < uploads; uploaded++)
          assert.equal(await upload(), COURSES_PER_UPLOAD);
      });
      after(() => headgate?.stop());

      test('is reported to queries, and uploads go on', async () => {
        const { status, body } = await countCourses();
        assert.equal(status, 503);
        assert.match(
          body.message,
          /^The copy of the organisation's data cannot be used at the moment: .*space/i,
        );
        assert.equal(await upload(), COURSES_PER_UPLOAD);
        for (let again = 0; again < 3; again++) assert.equal((await countCourses()).status, 503);
        const logged = headgate
          .output()
          .match(/a query was refused, because the replica cannot be used: .*$/gm)!;
        for (const line of logged) assert.match(line, /No space left on device/);
        // Four queries were refused. A busy machine may give a second reason, but each reason is logged once.
        const reasons = new Set(logged.map((line) => line.replaceAll(/[\da-f]/gi, '')));
        assert.equal(reasons.size, logged.length, `${logged}`);
        assert.doesNotMatch(headgate.output(), /built anew/);
        const saved = await api.request<{ failure: { message: string } }>('/v1/segments/all', {
          method: 'PUT',
          body: { condition: { customer: 'region', exists: true } },
        });
        assert.match(saved.body.failure.message, /No space left on device/);
        assert.ok(!saved.body.failure.message.includes(analytics), saved.body.failure.message);
      });

      test('is completed when there is space', async () => {
        resize(100, 'remount,');
        const { status, text, body } = await countCourses();
        assert.equal(status, 200, text);
        assert.deepEqual(body.rows, [[(uploads + 1) * COURSES_PER_UPLOAD]]);
        assert.equal(body.as_of.complete, true);
      });
    });
  }
});
