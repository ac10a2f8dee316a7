// Stores segments in SQLite.

import type { SQLInputValue, SQLOutputValue } from 'node:sqlite';
import { STEP_ENTRIES } from '../page-limits.ts';
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
  lastSeqSql,
  lastToDelete,
  leftAfterSql,
  markDeletedSql,
  memberChangesRead,
  memberChangesSql,
  memberSinceSql,
  membershipOf,
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
  writtenMembershipsSql,
} from '../segment-table.ts';
import { type UndoStep, undoAll } from '../segment-undo.ts';
import {
  type DueSegment,
  type DueTimes,
  EVALUATION_ABANDONED_MS,
  type EvaluationKey,
  MEMBERSHIPS_AT_ONCE,
  type MemberChange,
  type MemberChangesRead,
  type Membership,
  type MembershipPosition,
  type Segment,
  type SegmentDefinition,
  type SegmentEvaluation,
  type SegmentSet,
  type SegmentStore,
} from '../segments.ts';
import type { Steps } from './pages.ts';
import { arraysOf, type Prepare } from './statements.ts';
import { type Callers, nobodys } from './thread-operations.ts';

const STORED_BYTES = 100;

/** Runs a statement whose parameters are written as $1, $2 and so on, and returns its rows. */
function rowsOf(
  prepare: Prepare,
  sql: string,
  values: readonly SQLInputValue[],
): readonly SQLOutputValue[][] {
  return [...arraysOf(prepare, sql.replaceAll('$', '?'), values)];
}

export function segmentLookUps(prepare: Prepare) {
  return {
    segments(organisation: OrganisationNumber): SegmentSet {
      const [row] = rowsOf(prepare, revisionSql, [organisation]);
      return {
        revision: Number(row?.[0] ?? 0),
        segments: rowsOf(prepare, segmentsSql, [organisation]).map(segmentOf),
      };
    },

    segmentConditions(
      organisation: OrganisationNumber,
      names: readonly string[],
    ): ReadonlyMap<string, string> {
      const sql = 'SELECT name, condition FROM segments WHERE organisation = $1 AND name = $2';
      const rows = names.flatMap((name) => rowsOf(prepare, sql, [organisation, name]));
      return new Map(rows as [string, string][]);
    },

    dueSegments({ evaluatedBeforeMs, attemptedBeforeMs }: DueTimes): readonly DueSegment[] {
      return rowsOf(prepare, dueSql, [evaluatedBeforeMs, attemptedBeforeMs]).map(dueSegmentOf);
    },

    memberSince(organisation: OrganisationNumber, segment: number, customerId: string): number | null {
      const [row] = rowsOf(prepare, memberSinceSql, [organisation, segment, customerId]);
      return row === undefined ? null : Number(row[0]);
    },

    allSegments() {
      return rowsOf(prepare, allSegmentsSql, []).map((values) => {
        const [organisation, segment, isDeleted] = values.map(Number) as [number, number, number];
        return { organisation, segment, isDeleted: isDeleted === 1 };
      });
    },
  };
}

export function segmentLists(prepare: Prepare) {
  return {
    /**
     * A running evaluation may have written millions of memberships that are not visible yet, so they are skipped in
     * steps. All steps see the same evaluation, because they compare with the same number.
     */
    *memberships(
      organisation: OrganisationNumber,
      segment: number,
      after: MembershipPosition | null,
      limit: number,
    ): Steps<readonly Membership[]> {
      const [bounds] = rowsOf(prepare, lastSeqSql, [organisation, segment]);
      const lastSeq = Number(bounds?.[0] ?? 0);
      const visible: Membership[] = [];
      let { customerId, enteredSeq } = after ?? { customerId: NIL_ID, enteredSeq: 0 };
      for (let entries = Math.min(limit, STEP_ENTRIES); ; entries = STEP_ENTRIES) {
        const values = [organisation, segment, customerId, enteredSeq, entries];
        const step = rowsOf(prepare, writtenMembershipsSql, values).map(membershipOf);
        for (const membership of step) {
          if (membership.enteredSeq > lastSeq) continue;
          visible.push(asOf(membership, lastSeq));
          if (visible.length === limit) return visible;
        }
        if (step.length < entries) return visible;
        ({ customerId, enteredSeq } = step.at(-1)!);
        yield;
      }
    },

    // biome-ignore lint/correctness/useYield: one step is enough.
    *memberChanges(
      organisation: OrganisationNumber,
      segment: number,
      afterSeq: number | null,
      limit: number,
    ): Steps<MemberChangesRead> {
      const changes = rowsOf(prepare, memberChangesSql, [organisation, segment, afterSeq, limit]);
      const [bounds] = rowsOf(prepare, changeBoundsSql, [organisation, segment]);
      return memberChangesRead(afterSeq, changes, bounds);
    },
  };
}

/** Returns the membership as it was at the change with this number. */
function asOf(membership: Membership, lastSeq: number): Membership {
  const hasLeft = membership.leftSeq !== null && membership.leftSeq <= lastSeq;
  return hasLeft ? membership : { ...membership, leftSeq: null, leftAtMs: null };
}

export function segmentWrites(prepare: Prepare) {
  const run = (sql: string, values: readonly SQLInputValue[]): readonly SQLOutputValue[][] =>
    rowsOf(prepare, sql, values);
  /** Returns false if no rows were left. `seqsSql` selects the numbers of the rows. */
  const changeSome = (seqsSql: string, changeSql: string, values: readonly SQLInputValue[]): boolean => {
    const seqs = run(seqsSql, [...values, MEMBERSHIPS_AT_ONCE]);
    if (seqs.length > 0) run(changeSql, [...values, seqs.at(-1)![0]!]);
    return seqs.length > 0;
  };
  const valuesOf = ({ organisation, segment, token }: EvaluationKey): SQLInputValue[] => [
    organisation,
    segment,
    token,
  ];

  return {
    saveSegment(
      organisation: OrganisationNumber,
      revision: number,
      definition: SegmentDefinition,
      nowMs: number,
    ): boolean {
      if (run(setRevisionSql, [organisation, revision, revision + 1]).length === 0) return false;
      run(saveSegmentSql, definitionValues(organisation, revision + 1, definition, nowMs));
      return true;
    },

    markSegmentDeleted(organisation: OrganisationNumber, revision: number, name: string): boolean {
      if (run(setRevisionSql, [organisation, revision, revision]).length === 0) return false;
      const [row] = run(markDeletedSql, [organisation, name]);
      const next = revisionAfterDeletion(revision, Number(row?.[0] ?? 0));
      run(setRevisionSql, [organisation, revision, next]);
      return true;
    },

    beginEvaluation(key: EvaluationKey, nowMs: number): Segment | null {
      const values = [...valuesOf(key), nowMs, nowMs - EVALUATION_ABANDONED_MS];
      const [row] = run(beginSql, values);
      return row === undefined ? null : segmentOf(row);
    },

    /** Undoes some of the changes after a number that an interrupted evaluation has written. */
    undoSome(key: EvaluationKey, afterSeq: number, nowMs: number): UndoStep {
      if (run(keepTokenSql, [...valuesOf(key), nowMs]).length === 0) return 'ended';
      const values = [key.organisation, key.segment, afterSeq];
      const hasUndone =
        changeSome(enteredAfterSql, deleteEnteredSql, values) ||
        changeSome(leftAfterSql, undoLeavingSql, values);
      return hasUndone ? 'some' : 'none';
    },

    /** Returns false if there were none. */
    removeSomeMemberships(organisation: OrganisationNumber, segment: number): boolean {
      return changeSome(enteredAfterSql, deleteEnteredSql, [organisation, segment, 0]);
    },

    deleteMarkedSegment(organisation: OrganisationNumber, segment: number): void {
      run(deleteSegmentSql, [organisation, segment]);
    },

    writeMemberChanges(
      key: EvaluationKey,
      firstSeq: number,
      changes: readonly MemberChange[],
      nowMs: number,
    ): boolean {
      if (run(keepTokenSql, [...valuesOf(key), nowMs]).length === 0) return false;
      const { organisation, segment } = key;
      const enter =
        prepare(`INSERT INTO segment_memberships (organisation, segment, customer_id, entered_seq, since_ms)
        VALUES (?1, ?2, ?3, ?4, ?5)`);
      const leave = prepare(`UPDATE segment_memberships SET left_seq = ?4, left_at_ms = ?5
        WHERE organisation = ?1 AND segment = ?2 AND customer_id = ?3 AND left_seq IS NULL`);
      for (const [position, { customerId, hasEntered }] of changes.entries()) {
        (hasEntered ? enter : leave).run(organisation, segment, customerId, firstSeq + position, nowMs);
      }
      return true;
    },

    finishEvaluation(key: EvaluationKey, { atMs, ms, entered, left }: SegmentEvaluation): boolean {
      return run(finishSql, [...valuesOf(key), atMs, ms, entered, left]).length > 0;
    },

    failEvaluation(key: EvaluationKey, nowMs: number, reason: string): void {
      run(failSql, [...valuesOf(key), nowMs, reason]);
    },

    /** Deletes some memberships that ended within the bounds. Returns true if more may be left. */
    expireSome(organisation: OrganisationNumber, segment: number, bounds: EndedBounds): boolean {
      const ended = run(endedSql, [organisation, segment, MEMBERSHIPS_AT_ONCE]);
      const last = lastToDelete(ended, bounds);
      if (last === null) return false;
      run(deleteEndedSql, [organisation, segment, last]);
      run(keepAfterSql, [organisation, segment, last]);
      return ended.length === MEMBERSHIPS_AT_ONCE;
    },

    copySegment(
      organisation: OrganisationNumber,
      revision: number,
      segment: Segment,
      conditionJson: string,
    ): void {
      const present = Number(run(revisionSql, [organisation])[0]?.[0] ?? 0);
      run(setRevisionSql, [organisation, present, Math.max(present, revision)]);
      run(copySegmentSql, [organisation, conditionJson, ...segmentValues(segment)]);
    },

    copyMemberships(
      organisation: OrganisationNumber,
      segment: number,
      memberships: readonly Membership[],
    ): void {
      const insert = prepare(copyMembershipsSql('VALUES (?, ?, ?, ?, ?, ?, ?)'));
      for (const membership of memberships) {
        insert.run(organisation, segment, ...membershipValues(membership));
      }
    },
  };
}

export function segmentStore({ writer, reader, lister }: Callers): SegmentStore {
  const someRows = (organisation: OrganisationNumber, rows = MEMBERSHIPS_AT_ONCE) => ({
    organisation,
    rows,
    bytes: rows * STORED_BYTES,
  });
  const removeMemberships = async (organisation: OrganisationNumber, segment: number): Promise<void> => {
    while (await writer.call('removeSomeMemberships', [organisation, segment], someRows(organisation)));
    await writer.call('deleteMarkedSegment', [organisation, segment], { organisation });
  };
  const expire = async (
    organisation: OrganisationNumber,
    segment: number,
    bounds: EndedBounds,
  ): Promise<void> => {
    while (await writer.call('expireSome', [organisation, segment, bounds], someRows(organisation)));
  };
  return {
    segments: (organisation) => reader.call('segments', [organisation], { organisation }),
    segmentConditions: (organisation, names) =>
      reader.call('segmentConditions', [organisation, names], { organisation, rows: names.length }),
    saveSegment: (organisation, ...args) =>
      writer.call('saveSegment', [organisation, ...args], { organisation }),
    deleteSegment: (organisation, ...args) =>
      writer.call('markSegmentDeleted', [organisation, ...args], { organisation }),
    dueSegments: (due) => reader.call('dueSegments', [due], nobodys),
    async beginEvaluation(key, nowMs) {
      const { organisation } = key;
      const begun = await writer.call('beginEvaluation', [key, nowMs], { organisation });
      if (begun === null) return null;
      const isUndone = await undoAll(nowMs, (stepAtMs) =>
        writer.call('undoSome', [key, begun.lastSeq, stepAtMs], someRows(organisation)),
      );
      return isUndone ? begun : null;
    },
    writeMemberChanges: (key, firstSeq, changes, nowMs) =>
      writer.call(
        'writeMemberChanges',
        [key, firstSeq, changes, nowMs],
        someRows(key.organisation, changes.length),
      ),
    finishEvaluation: (key, evaluation) => writer.call('finishEvaluation', [key, evaluation], key),
    failEvaluation: (key, nowMs, reason) => writer.call('failEvaluation', [key, nowMs, reason], key),
    memberships: (organisation, ...args) =>
      lister.call('memberships', [organisation, ...args], { organisation, rows: args[2] }),
    memberSince: (organisation, ...args) =>
      reader.call('memberSince', [organisation, ...args], { organisation }),
    memberChanges: (organisation, ...args) =>
      lister.call('memberChanges', [organisation, ...args], { organisation, rows: args[2] }),
    async expireMemberships(leftBeforeMs) {
      for (const { organisation, segment, isDeleted } of await reader.call('allSegments', [], nobodys)) {
        if (isDeleted) await removeMemberships(organisation, segment);
        else await expire(organisation, segment, { leftBeforeMs, upToSeq: 0 });
      }
    },
    expireMembershipsUpTo: (organisation, segment, upToSeq) =>
      expire(organisation, segment, { leftBeforeMs: 0, upToSeq }),
    removeMemberships,
    copySegment: (organisation, ...args) =>
      writer.call('copySegment', [organisation, ...args], { organisation }),
    copyMemberships: (organisation, ...args) =>
      writer.call('copyMemberships', [organisation, ...args], someRows(organisation, args[1].length)),
  };
}
