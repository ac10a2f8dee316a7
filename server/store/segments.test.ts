// Tests what every store promises about segments.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import type { OrganisationNumber } from './rows.ts';
import {
  EVALUATION_ABANDONED_MS,
  type EvaluationKey,
  MEMBERSHIPS_AT_ONCE,
  type MemberChange,
  type Membership,
  type NumberedMemberChange,
  type Segment,
  type SegmentDefinition,
} from './segments.ts';
import type { Store } from './store.ts';
import { replicaStore, type TestStore, testStores } from './test-stores.ts';
import { times } from './test-thoroughness.ts';

const NOW_MS = 1_714_555_800_000;
const customers = Array.from({ length: 8 }, (_, n) => `00000000-0000-4000-8000-00000000000${n}`);

function entering(...ids: readonly string[]): readonly MemberChange[] {
  return ids.map((customerId) => ({ customerId, hasEntered: true }));
}

function leaving(...ids: readonly string[]): readonly MemberChange[] {
  return ids.map((customerId) => ({ customerId, hasEntered: false }));
}

for (const { name, open } of [...testStores, replicaStore]) {
  describe(`the segments of a ${name} store`, () => {
    let opened: TestStore;
    let store: Store;
    before(async () => {
      opened = await open();
      store = opened.store;
    });
    after(() => opened.dispose());

    const newOrganisation = async (): Promise<OrganisationNumber> =>
      (await store.createOrganisation(randomUUID(), randomUUID(), NOW_MS))!.organisation;

    const save = async (
      organisation: OrganisationNumber,
      name: string,
      values: Partial<SegmentDefinition> & { readonly nowMs?: number } = {},
    ): Promise<Segment> => {
      const { revision } = await store.segments(organisation);
      const { conditionJson = '{}', uses = [], note = null, nowMs = NOW_MS } = values;
      const definition = { name, note, conditionJson, uses };
      assert.ok(await store.saveSegment(organisation, revision, definition, nowMs));
      return segmentNamed(organisation, name);
    };

    const segmentNamed = async (organisation: OrganisationNumber, wanted: string): Promise<Segment> =>
      (await store.segments(organisation)).segments.find(({ name }) => name === wanted)!;

    const begin = async (
      organisation: OrganisationNumber,
      { segment }: Segment,
      nowMs = NOW_MS,
    ): Promise<EvaluationKey> => {
      const key = { organisation, segment, token: randomUUID() };
      assert.ok(await store.beginEvaluation(key, nowMs));
      return key;
    };

    const evaluate = async (
      organisation: OrganisationNumber,
      name: string,
      changes: readonly MemberChange[],
      atMs = NOW_MS,
    ): Promise<Segment> => {
      const segment = await segmentNamed(organisation, name);
      const key = await begin(organisation, segment, atMs);
      assert.ok(await store.writeMemberChanges(key, segment.lastSeq + 1, changes, atMs));
      const entered = changes.filter(({ hasEntered }) => hasEntered).length;
      const evaluation = { atMs, ms: 7, entered, left: changes.length - entered };
      assert.ok(await store.finishEvaluation(key, evaluation));
      return segmentNamed(organisation, name);
    };

    const all = async (organisation: OrganisationNumber, segment: number): Promise<readonly Membership[]> => {
      const found: Membership[] = [];
      for (;;) {
        const page = await store.memberships(organisation, segment, found.at(-1) ?? null, 3);
        found.push(...page);
        if (page.length < 3) return found;
      }
    };

    const members = async (organisation: OrganisationNumber, segment: number): Promise<readonly string[]> =>
      (await all(organisation, segment))
        .filter(({ leftSeq }) => leftSeq === null)
        .map(({ customerId }) => customerId);

    const changesAfter = async (
      organisation: OrganisationNumber,
      segment: number,
      afterSeq: number | null,
      limit = 1000,
    ): Promise<readonly NumberedMemberChange[]> => {
      const read = await store.memberChanges(organisation, segment, afterSeq, limit);
      assert.ok(read.kind === 'changes');
      return read.changes;
    };

    test('are saved, replaced and listed by name', async () => {
      const organisation = await newOrganisation();
      assert.deepEqual(await store.segments(organisation), { revision: 0, segments: [] });
      const b = await save(organisation, 'b', {
        note: 'a note',
        conditionJson: '{"all":[]}',
        uses: ['x', 'y'],
      });
      assert.deepEqual(b, {
        segment: b.segment,
        name: 'b',
        note: 'a note',
        uses: ['x', 'y'],
        createdAtMs: NOW_MS,
        savedAtMs: NOW_MS,
        members: 0,
        lastSeq: b.segment,
        keptAfterSeq: b.segment,
        evaluation: null,
        failure: null,
      });
      const a = await save(organisation, 'a');
      const changed = await save(organisation, 'b', { conditionJson: '{"any":[]}', nowMs: NOW_MS + 5 });
      assert.deepEqual(changed, { ...b, note: null, uses: [], savedAtMs: NOW_MS + 5 });
      assert.deepEqual(
        await store.segmentConditions(organisation, ['b', 'unknown']),
        new Map([['b', '{"any":[]}']]),
      );
      assert.equal((await store.segmentConditions(organisation, ['a', 'b'])).size, 2);
      assert.deepEqual((await store.segments(organisation)).segments, [a, changed]);
      assert.deepEqual((await store.segments(await newOrganisation())).segments, []);
    });

    test('are not changed if another change came first', async () => {
      const organisation = await newOrganisation();
      await save(organisation, 'a');
      const { revision, segments } = await store.segments(organisation);
      const definition = { name: 'b', note: null, conditionJson: '{}', uses: [] };
      for (const other of [0, revision - 1, revision + 1]) {
        assert.equal(await store.saveSegment(organisation, other, definition, NOW_MS), false);
        assert.equal(await store.deleteSegment(organisation, other, 'a'), false);
      }
      assert.deepEqual(await store.segments(organisation), { revision, segments });
      const both = await Promise.all([
        store.saveSegment(organisation, revision, definition, NOW_MS),
        store.deleteSegment(organisation, revision, 'a'),
      ]);
      assert.deepEqual(both.toSorted(), [false, true]);
    });

    test('show the members and changes of evaluations that are finished', async () => {
      const organisation = await newOrganisation();
      const [p, q, r] = customers as [string, string, string];
      const segment = await save(organisation, 'a');
      const other = await save(organisation, 'other');
      const first = segment.lastSeq + 1;
      const evaluated = await evaluate(organisation, 'a', entering(p, q), NOW_MS + 1);
      assert.deepEqual(evaluated, {
        ...segment,
        members: 2,
        lastSeq: first + 1,
        evaluation: { atMs: NOW_MS + 1, ms: 7, entered: 2, left: 0 },
      });
      await evaluate(organisation, 'a', [...leaving(p), ...entering(r)], NOW_MS + 2);
      await evaluate(organisation, 'a', entering(p), NOW_MS + 3);
      assert.deepEqual(await members(organisation, segment.segment), [p, q, r]);
      assert.equal(await store.memberSince(organisation, segment.segment, p), NOW_MS + 3);
      assert.equal(await store.memberSince(organisation, segment.segment, q), NOW_MS + 1);
      assert.equal(await store.memberSince(organisation, segment.segment, customers[5]!), null);
      assert.equal(await store.memberSince(organisation, other.segment, q), null);
      assert.equal(await store.memberSince(await newOrganisation(), segment.segment, q), null);
      const change = (seq: number, customerId: string, hasEntered: boolean, atMs: number) => ({
        customerId,
        hasEntered,
        seq,
        atMs,
      });
      const expected = [
        change(first, p, true, NOW_MS + 1),
        change(first + 1, q, true, NOW_MS + 1),
        change(first + 2, p, false, NOW_MS + 2),
        change(first + 3, r, true, NOW_MS + 2),
        change(first + 4, p, true, NOW_MS + 3),
      ];
      const changes = (afterSeq: number | null, limit: number) =>
        changesAfter(organisation, segment.segment, afterSeq, limit);
      assert.deepEqual(await changes(null, 100), expected);
      assert.deepEqual(await changes(segment.lastSeq, 100), expected);
      assert.deepEqual(await changes(first, 3), expected.slice(1, 4));
      assert.deepEqual(await changes(first + 4, 3), []);
      assert.deepEqual(await changesAfter(organisation, other.segment, null), []);
    });

    test('show nothing of an evaluation that is running, failed or was interrupted', async () => {
      const organisation = await newOrganisation();
      const [p, q] = customers as [string, string];
      await save(organisation, 'a');
      const before = await evaluate(organisation, 'a', entering(p));
      const assertAsBefore = async (): Promise<void> => {
        assert.deepEqual(await members(organisation, before.segment), [p]);
        assert.equal(await store.memberSince(organisation, before.segment, p), NOW_MS);
        assert.equal(await store.memberSince(organisation, before.segment, q), null);
        assert.equal((await changesAfter(organisation, before.segment, null)).length, 1);
        assert.equal((await segmentNamed(organisation, 'a')).members, 1);
      };
      const running = await begin(organisation, before);
      const changes = [...leaving(p), ...entering(q)];
      assert.ok(await store.writeMemberChanges(running, before.lastSeq + 1, changes, NOW_MS));
      await assertAsBefore();
      const second = { ...running, token: randomUUID() };
      assert.equal(await store.beginEvaluation(second, NOW_MS + EVALUATION_ABANDONED_MS), null);
      assert.ok(await store.beginEvaluation(running, NOW_MS), 'the same evaluation begins again');
      await assertAsBefore();
      assert.ok(await store.writeMemberChanges(running, before.lastSeq + 1, changes, NOW_MS));

      await store.failEvaluation(running, NOW_MS + 2, 'the disk is full');
      await assertAsBefore();
      const failed = await segmentNamed(organisation, 'a');
      assert.deepEqual(failed.failure, { atMs: NOW_MS + 2, reason: 'the disk is full' });
      assert.deepEqual(failed.evaluation, before.evaluation);
      assert.equal(await store.writeMemberChanges(running, before.lastSeq + 3, [], NOW_MS), false);

      const abandoned = await begin(organisation, before);
      await assertAsBefore();
      assert.ok(await store.writeMemberChanges(abandoned, before.lastSeq + 1, changes, NOW_MS));
      const later = NOW_MS + EVALUATION_ABANDONED_MS + 1;
      await begin(organisation, before, later);
      await assertAsBefore();
      assert.equal(
        await store.finishEvaluation(abandoned, { atMs: NOW_MS, ms: 1, entered: 1, left: 1 }),
        false,
      );
      await save(organisation, 'a');
      const done = await evaluate(organisation, 'a', changes, later + 1);
      assert.equal(done.failure, null);
      assert.deepEqual(await members(organisation, before.segment), [q]);
    });

    test('end a running evaluation when they are saved or deleted', async () => {
      const organisation = await newOrganisation();
      const segment = await save(organisation, 'a');
      const running = await begin(organisation, segment);
      await save(organisation, 'a');
      const evaluation = { atMs: NOW_MS, ms: 1, entered: 0, left: 0 };
      assert.equal(await store.writeMemberChanges(running, 1, [], NOW_MS), false);
      assert.equal(await store.finishEvaluation(running, evaluation), false);
      const again = await begin(organisation, segment);
      const { revision } = await store.segments(organisation);
      assert.ok(await store.deleteSegment(organisation, revision, 'a'));
      assert.equal(await store.finishEvaluation(again, evaluation), false);
      assert.equal(await store.beginEvaluation(again, NOW_MS), null);
    });

    test('remove everything of an interrupted evaluation, however large it was', async () => {
      const organisation = await newOrganisation();
      const segment = await save(organisation, 'a');
      const many = Array.from({ length: MEMBERSHIPS_AT_ONCE + 500 }, () => randomUUID());
      await evaluate(organisation, 'a', entering(...many));
      const before = await segmentNamed(organisation, 'a');
      const running = await begin(organisation, before);
      const others = Array.from({ length: MEMBERSHIPS_AT_ONCE + 500 }, () => randomUUID());
      const changes = [...leaving(...many), ...entering(...others)];
      assert.ok(await store.writeMemberChanges(running, before.lastSeq + 1, changes, NOW_MS));
      await store.failEvaluation(running, NOW_MS, 'interrupted');
      await evaluate(organisation, 'a', []);
      const found = await store.memberships(organisation, segment.segment, null, 10_000);
      assert.deepEqual(
        found.map(({ customerId }) => customerId),
        many.toSorted(),
      );
    });

    test('are due when they were never evaluated, or long ago, or were saved since', async () => {
      const organisation = await newOrganisation();
      const isDue = async (evaluatedBeforeMs: number, attemptedBeforeMs: number): Promise<boolean> => {
        const due = await store.dueSegments({ evaluatedBeforeMs, attemptedBeforeMs });
        return due.some((one) => one.organisation === organisation && one.name === 'a');
      };
      assert.equal(await isDue(NOW_MS, NOW_MS), false);
      const segment = await save(organisation, 'a');
      assert.equal(await isDue(NOW_MS, NOW_MS), false, 'the request that saves it evaluates it');
      assert.equal(await isDue(NOW_MS, NOW_MS + 1), true);
      await evaluate(organisation, 'a', [], NOW_MS + 10);
      assert.equal(await isDue(NOW_MS + 10, NOW_MS + 11), false);
      assert.equal(await isDue(NOW_MS + 11, NOW_MS + 1), true, 'only failures wait');
      await store.failEvaluation(await begin(organisation, segment), NOW_MS + 20, 'too slow');
      assert.equal(await isDue(NOW_MS + 11, NOW_MS + 20), false);
      assert.equal(await isDue(NOW_MS + 11, NOW_MS + 21), true);
      await save(organisation, 'a', { nowMs: NOW_MS + 30 });
      assert.equal(await isDue(NOW_MS, NOW_MS + 30), false);
      assert.equal(await isDue(NOW_MS, NOW_MS + 31), true);
      const { revision } = await store.segments(organisation);
      await store.deleteSegment(organisation, revision, 'a');
      assert.equal(await isDue(NOW_MS + 40, NOW_MS + 40), false);
    });

    test('are due in the order of their last evaluation or attempt', async () => {
      const organisation = await newOrganisation();
      for (const name of ['late', 'early', 'failed', 'new']) await save(organisation, name);
      await evaluate(organisation, 'late', [], NOW_MS + 30);
      await evaluate(organisation, 'early', [], NOW_MS + 10);
      const failed = await segmentNamed(organisation, 'failed');
      await store.failEvaluation(await begin(organisation, failed), NOW_MS + 20, 'too slow');
      const due = await store.dueSegments({ evaluatedBeforeMs: NOW_MS + 40, attemptedBeforeMs: NOW_MS + 40 });
      assert.deepEqual(
        due.filter((one) => one.organisation === organisation).map(({ name }) => name),
        ['new', 'early', 'failed', 'late'],
      );
    });

    test('lose the memberships that ended long ago, and the changes up to them', async () => {
      const organisation = await newOrganisation();
      const [p, q, r] = customers as [string, string, string];
      const { segment } = await save(organisation, 'a');
      await evaluate(organisation, 'a', entering(p, q, r), NOW_MS);
      const first = await evaluate(organisation, 'a', leaving(p), NOW_MS + 1);
      await evaluate(organisation, 'a', leaving(q), NOW_MS + 2);
      await store.expireMemberships(NOW_MS + 2);
      const kept = await segmentNamed(organisation, 'a');
      assert.equal(kept.keptAfterSeq, first.lastSeq);
      assert.deepEqual(
        (await all(organisation, segment)).map(({ customerId }) => customerId),
        [q, r],
      );
      const left = [{ customerId: q, hasEntered: false, seq: kept.lastSeq, atMs: NOW_MS + 2 }];
      assert.deepEqual(await changesAfter(organisation, segment, first.lastSeq), left);
      assert.deepEqual(await changesAfter(organisation, segment, null), left);
      for (const afterSeq of [0, first.lastSeq - 1, kept.lastSeq + 1]) {
        const gone = { kind: 'gone', latest: kept.lastSeq };
        assert.deepEqual(await store.memberChanges(organisation, segment, afterSeq, 9), gone);
      }
    });

    test('lose the memberships that ended up to a change, and the changes up to them', async () => {
      const organisation = await newOrganisation();
      const [p, q, r] = customers as [string, string, string];
      const { segment, lastSeq, keptAfterSeq } = await save(organisation, 'a');
      const many = Array.from({ length: MEMBERSHIPS_AT_ONCE + 10 }, () => randomUUID());
      await evaluate(organisation, 'a', entering(p, q, r, ...many));
      await store.expireMembershipsUpTo(organisation, segment, lastSeq + 3);
      assert.equal((await segmentNamed(organisation, 'a')).keptAfterSeq, keptAfterSeq, 'nobody has left');
      await evaluate(organisation, 'a', leaving(...many, p));
      const { lastSeq: left } = await evaluate(organisation, 'a', [...entering(p), ...leaving(q)]);
      await store.expireMembershipsUpTo(organisation, segment, left - 1);
      assert.equal((await segmentNamed(organisation, 'a')).keptAfterSeq, left - 2);
      assert.deepEqual(
        (await all(organisation, segment)).map(({ customerId }) => customerId),
        [p, q, r],
      );
    });

    test('never show some of the changes while they expire', async () => {
      const organisation = await newOrganisation();
      const { segment } = await save(organisation, 'a');
      const many = Array.from({ length: 500 }, () => randomUUID());
      for (let round = 0; round < 10; round++) {
        const { lastSeq } = await evaluate(organisation, 'a', entering(...many), NOW_MS + round);
        await evaluate(organisation, 'a', leaving(...many), NOW_MS + round);
        let isExpired = false;
        const expired = store.expireMemberships(NOW_MS + round + 1).then(() => {
          isExpired = true;
        });
        while (!isExpired) {
          const read = await store.memberChanges(organisation, segment, lastSeq, 1000);
          if (read.kind === 'changes') assert.equal(read.changes.length, many.length);
          else assert.equal(read.kind, 'gone');
        }
        await expired;
      }
    });

    test('leave nothing behind when they are deleted, and do not use their numbers again', async () => {
      const organisation = await newOrganisation();
      await save(organisation, 'a');
      const many = Array.from({ length: MEMBERSHIPS_AT_ONCE + 10 }, () => randomUUID());
      const deleted = await evaluate(organisation, 'a', entering(...many));
      const { revision } = await store.segments(organisation);
      assert.ok(await store.deleteSegment(organisation, revision, 'a'));
      assert.deepEqual((await store.segments(organisation)).segments, []);
      assert.deepEqual(await store.memberChanges(organisation, deleted.segment, null, 9), {
        kind: 'deleted',
      });
      const again = await save(organisation, 'a');
      assert.ok(again.segment > deleted.segment);
      assert.ok(again.keptAfterSeq > deleted.lastSeq, 'a follower of the old segment is told to begin anew');
      await store.expireMemberships(0);
      assert.deepEqual(await all(organisation, deleted.segment), []);
      assert.deepEqual(await all(organisation, again.segment), []);
    });

    test('have the members that a model has, after any evaluations', async () => {
      const wanted = fc.array(fc.subarray(customers), { minLength: 1, maxLength: 6 });
      await fc.assert(
        fc.asyncProperty(wanted, async (sets) => {
          const organisation = await newOrganisation();
          const { segment, lastSeq } = await save(organisation, 'a');
          let current: readonly string[] = [];
          for (const set of sets) {
            const entered = set.filter((id) => !current.includes(id));
            const left = current.filter((id) => !set.includes(id));
            await evaluate(organisation, 'a', [...entering(...entered), ...leaving(...left)]);
            current = set;
          }
          assert.deepEqual(await members(organisation, segment), current.toSorted());
          assert.equal((await segmentNamed(organisation, 'a')).members, current.length);
          const followed = new Set<string>();
          for (const change of await changesAfter(organisation, segment, lastSeq)) {
            if (change.hasEntered) followed.add(change.customerId);
            else followed.delete(change.customerId);
          }
          assert.deepEqual([...followed].toSorted(), current.toSorted());
        }),
        { numRuns: times(15, 6) },
      );
    });
  });
}
