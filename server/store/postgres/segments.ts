// Stores segments in PostgreSQL.

import type { OrganisationNumber } from '../rows.ts';
import {
  allSegmentsSql,
  beginSql,
  changeBoundsSql,
  copyMembershipsSql,
  copySegmentSql,
  definitionValues,
  deleteEndedSql,
  deleteEnteredSql,
  deleteSegmentSql,
  dueSegmentOf,
  dueSql,
  type EndedBounds,
  endedSql,
  enteredAfterSql,
  failSql,
  finishSql,
  keepAfterSql,
  keepTokenSql,
  lastToDelete,
  leftAfterSql,
  markDeletedSql,
  memberChangesRead,
  memberChangesSql,
  memberSinceSql,
  membershipOf,
  membershipsSql,
  membershipValues,
  NIL_ID,
  revisionAfterDeletion,
  revisionSql,
  saveSegmentSql,
  segmentOf,
  segmentsSql,
  segmentValues,
  setRevisionSql,
  undoLeavingSql,
} from '../segment-table.ts';
import { type UndoStep, undoAll } from '../segment-undo.ts';
import {
  EVALUATION_ABANDONED_MS,
  type EvaluationKey,
  MEMBERSHIPS_AT_ONCE,
  type SegmentStore,
} from '../segments.ts';
import { callsOf, listsOf, upkeep } from './connection-slots.ts';
import type { Connections, Run, Sessions, TextRow } from './connections.ts';

const isOfSegment = 'organisation = $1 AND segment = $2';

export function segmentStore(connections: Connections): SegmentStore {
  const of = (organisation: OrganisationNumber): Sessions => connections.for(callsOf(organisation));
  const valuesOf = ({ organisation, segment, token }: EvaluationKey) => [organisation, segment, token];
  const ofUpkeep = connections.for(upkeep);

  return {
    async segments(organisation) {
      return of(organisation).transaction(async ({ run }) => {
        // The revision is read first. If a segment is saved meanwhile, the revision is too old and refuses a change.
        const revision = await revisionOf(run, organisation);
        const rows = await run({ name: 'segments', text: segmentsSql, values: [organisation] });
        return { revision, segments: rows.map(segmentOf) };
      });
    },

    async segmentConditions(organisation, names) {
      const rows = await of(organisation).run({
        name: 'segment conditions',
        text: 'SELECT name, condition FROM segments WHERE organisation = $1 AND name = ANY ($2::text[])',
        values: [organisation, names],
      });
      return new Map(rows as [string, string][]);
    },

    saveSegment: (organisation, revision, definition, nowMs) =>
      of(organisation).transaction(async ({ run }) => {
        if (!(await setRevision(run, organisation, revision, revision + 1))) return false;
        const values = definitionValues(organisation, revision + 1, definition, nowMs);
        await run({ text: saveSegmentSql, values });
        return true;
      }),

    deleteSegment: (organisation, revision, name) =>
      of(organisation).transaction(async ({ run }) => {
        // Like `saveSegment`, this locks the revision before the segment, so that the two cannot wait for each other.
        if (!(await setRevision(run, organisation, revision, revision))) return false;
        const [row] = await run({ text: markDeletedSql, values: [organisation, name] });
        const next = revisionAfterDeletion(revision, Number(row?.[0] ?? 0));
        await setRevision(run, organisation, revision, next);
        return true;
      }),

    async dueSegments({ evaluatedBeforeMs, attemptedBeforeMs }) {
      const values = [evaluatedBeforeMs, attemptedBeforeMs];
      return (await ofUpkeep.run({ text: dueSql, values })).map(dueSegmentOf);
    },

    async beginEvaluation(key, nowMs) {
      const { organisation, segment } = key;
      const sessions = of(organisation);
      const values = [...valuesOf(key), nowMs, nowMs - EVALUATION_ABANDONED_MS];
      const [row] = await sessions.run({ text: beginSql, values });
      if (row === undefined) return null;
      const begun = segmentOf(row);
      // Renewing the token locks the segment, so a step and the changes of a newer evaluation cannot overlap.
      const undoSome = (stepAtMs: number): Promise<UndoStep> =>
        sessions.transaction(async ({ run }) => {
          const [kept] = await run({ text: keepTokenSql, values: [...valuesOf(key), stepAtMs] });
          if (kept === undefined) return 'ended';
          const unfinished = [organisation, segment, begun.lastSeq];
          const hasUndone =
            (await changeSome(run, enteredAfterSql, deleteEnteredSql, unfinished)) ||
            (await changeSome(run, leftAfterSql, undoLeavingSql, unfinished));
          return hasUndone ? 'some' : 'none';
        });
      return (await undoAll(nowMs, undoSome)) ? begun : null;
    },

    writeMemberChanges: (key, firstSeq, changes, nowMs) =>
      of(key.organisation).transaction(async ({ run }) => {
        const [kept] = await run({ text: keepTokenSql, values: [...valuesOf(key), nowMs] });
        if (kept === undefined) return false;
        if (changes.length === 0) return true;
        const numbered = changes.map((change, position) => ({ ...change, seq: firstSeq + position }));
        const valuesOfAll = (some: typeof numbered) => [
          key.organisation,
          key.segment,
          some.map(({ customerId }) => customerId),
          some.map(({ seq }) => seq),
          nowMs,
        ];
        const changed = 'unnest($3::uuid[], $4::bigint[]) AS changed (customer_id, seq)';
        await run({
          text: `INSERT INTO segment_memberships (organisation, segment, customer_id, entered_seq, since_ms)
            SELECT $1::integer, $2::bigint, customer_id, seq, $5::bigint FROM ${changed}`,
          values: valuesOfAll(numbered.filter(({ hasEntered }) => hasEntered)),
        });
        await run({
          text: `UPDATE segment_memberships SET left_seq = changed.seq, left_at_ms = $5 FROM ${changed}
            WHERE ${isOfSegment} AND segment_memberships.customer_id = changed.customer_id AND left_seq IS NULL`,
          values: valuesOfAll(numbered.filter(({ hasEntered }) => !hasEntered)),
        });
        return true;
      }),

    async finishEvaluation(key, { atMs, ms, entered, left }) {
      const values = [...valuesOf(key), atMs, ms, entered, left];
      return (await of(key.organisation).run({ text: finishSql, values })).length > 0;
    },

    async failEvaluation(key, nowMs, reason) {
      await of(key.organisation).run({ text: failSql, values: [...valuesOf(key), nowMs, reason] });
    },

    async memberships(organisation, segment, after, limit) {
      const { customerId, enteredSeq } = after ?? { customerId: NIL_ID, enteredSeq: 0 };
      const values = [organisation, segment, customerId, enteredSeq, limit];
      const { run } = connections.for(listsOf(organisation));
      return (await run({ name: 'memberships', text: membershipsSql, values })).map(membershipOf);
    },

    async memberSince(organisation, segment, customerId) {
      const values = [organisation, segment, customerId];
      const [row] = await of(organisation).run({ name: 'member since', text: memberSinceSql, values });
      return row === undefined ? null : Number(row[0]);
    },

    async memberChanges(organisation, segment, afterSeq, limit) {
      const { run } = connections.for(listsOf(organisation));
      const values = [organisation, segment, afterSeq, limit];
      const changes = await run({ name: 'member changes', text: memberChangesSql, values });
      const [bounds] = await run({
        name: 'bounds of member changes',
        text: changeBoundsSql,
        values: [organisation, segment],
      });
      return memberChangesRead(afterSeq, changes, bounds);
    },

    async expireMemberships(leftBeforeMs) {
      const all = await ofUpkeep.run({ text: allSegmentsSql, values: [] });
      for (const [organisation, segment, isDeleted] of all.map(numbers)) {
        if (isDeleted === 1) await removeMemberships(ofUpkeep, organisation!, segment!);
        else await expire(ofUpkeep, organisation!, segment!, { leftBeforeMs, upToSeq: 0 });
      }
    },

    expireMembershipsUpTo: (organisation, segment, upToSeq) =>
      expire(of(organisation), organisation, segment, { leftBeforeMs: 0, upToSeq }),

    removeMemberships: (organisation, segment) => removeMemberships(of(organisation), organisation, segment),

    copySegment: (organisation, revision, segment, conditionJson) =>
      of(organisation).transaction(async ({ run }) => {
        const present = await revisionOf(run, organisation);
        await setRevision(run, organisation, present, Math.max(present, revision));
        const values = [organisation, conditionJson, ...segmentValues(segment)];
        await run({ text: copySegmentSql, values });
      }),

    async copyMemberships(organisation, segment, memberships) {
      const rows = memberships.map(membershipValues);
      const columns = Array.from({ length: 5 }, (_, at) => rows.map((values) => values[at]!));
      const arrays = '$3::uuid[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[]';
      await of(organisation).run({
        text: copyMembershipsSql(`SELECT $1::integer, $2::bigint, copied.* FROM unnest(${arrays}) AS copied`),
        values: [organisation, segment, ...columns],
      });
    },
  };
}

function numbers(row: TextRow): readonly number[] {
  return row.map(Number);
}

async function revisionOf(run: Run, organisation: OrganisationNumber): Promise<number> {
  const [row] = await run({ name: 'segment revision', text: revisionSql, values: [organisation] });
  return Number(row?.[0] ?? 0);
}

/** Returns false and changes nothing if the set has another revision. */
async function setRevision(
  run: Run,
  organisation: OrganisationNumber,
  from: number,
  to: number,
): Promise<boolean> {
  return (await run({ text: setRevisionSql, values: [organisation, from, to] })).length > 0;
}

/** Deletes the memberships that ended within the bounds, in steps. */
async function expire(
  { transaction }: Sessions,
  organisation: OrganisationNumber,
  segment: number,
  bounds: EndedBounds,
): Promise<void> {
  const expireSome = (): Promise<boolean> =>
    transaction(async ({ run }) => {
      const ended = await run({ text: endedSql, values: [organisation, segment, MEMBERSHIPS_AT_ONCE] });
      const last = lastToDelete(ended, bounds);
      if (last === null) return false;
      await run({ text: deleteEndedSql, values: [organisation, segment, last] });
      await run({ text: keepAfterSql, values: [organisation, segment, last] });
      return ended.length === MEMBERSHIPS_AT_ONCE;
    });
  while (await expireSome());
}

async function removeMemberships(
  sessions: Sessions,
  organisation: OrganisationNumber,
  segment: number,
): Promise<void> {
  while (await changeSome(sessions.run, enteredAfterSql, deleteEnteredSql, [organisation, segment, 0]));
  await sessions.run({ text: deleteSegmentSql, values: [organisation, segment] });
}

/** Returns false if no memberships were left. `seqsSql` selects the numbers of those that are left. */
async function changeSome(
  run: Run,
  seqsSql: string,
  changeSql: string,
  values: readonly number[],
): Promise<boolean> {
  const seqs = await run({ text: seqsSql, values: [...values, MEMBERSHIPS_AT_ONCE] });
  if (seqs.length > 0) await run({ text: changeSql, values: [...values, seqs.at(-1)![0]] });
  return seqs.length > 0;
}
