// The SQL for the tables of segments, which is the same in every store. Parameters are written as $1, $2 and so on.

import type { OrganisationNumber } from './rows.ts';
import type {
  DueSegment,
  MemberChangesRead,
  Membership,
  NumberedMemberChange,
  Segment,
  SegmentDefinition,
} from './segments.ts';

export type Value = string | number | null;

const segmentColumns = [
  'segment',
  'name',
  'note',
  'uses',
  'created_at_ms',
  'saved_at_ms',
  'members',
  'last_seq',
  'kept_after_seq',
  'evaluated_at_ms',
  'evaluation_ms',
  'entered_members',
  'left_members',
  'attempted_at_ms',
  'failure',
] as const;

const columns = segmentColumns.join(', ');

export function segmentOf(values: readonly unknown[]): Segment {
  const [segment, name, note, uses, createdAtMs, savedAtMs, members, lastSeq, keptAfterSeq] = values;
  const [evaluatedAtMs, ms, entered, left, attemptedAtMs, failure] = values.slice(9);
  return {
    segment: Number(segment),
    name: name as string,
    note: note as string | null,
    uses: JSON.parse(uses as string) as string[],
    createdAtMs: Number(createdAtMs),
    savedAtMs: Number(savedAtMs),
    members: Number(members),
    lastSeq: Number(lastSeq),
    keptAfterSeq: Number(keptAfterSeq),
    evaluation:
      evaluatedAtMs === null
        ? null
        : { atMs: Number(evaluatedAtMs), ms: Number(ms), entered: Number(entered), left: Number(left) },
    failure: failure === null ? null : { atMs: Number(attemptedAtMs), reason: failure as string },
  };
}

/** Returns the values of a segment's columns, without its organisation. */
export function segmentValues(segment: Segment): Value[] {
  const { evaluation, failure } = segment;
  return [
    segment.segment,
    segment.name,
    segment.note,
    JSON.stringify(segment.uses),
    segment.createdAtMs,
    segment.savedAtMs,
    segment.members,
    segment.lastSeq,
    segment.keptAfterSeq,
    evaluation?.atMs ?? null,
    evaluation?.ms ?? null,
    evaluation?.entered ?? null,
    evaluation?.left ?? null,
    failure?.atMs ?? evaluation?.atMs ?? null,
    failure?.reason ?? null,
  ];
}

export const revisionSql = 'SELECT revision FROM segment_sets WHERE organisation = $1';

/** A deleted segment loses its name at once. Its row is deleted after its memberships. */
export const segmentsSql = `SELECT ${columns} FROM segments
  WHERE organisation = $1 AND name IS NOT NULL ORDER BY name`;

/** Parameters: organisation, old revision, new revision. Returns no row if the set has another revision. */
export const setRevisionSql = `INSERT INTO segment_sets (organisation, revision) VALUES ($1, $3)
  ON CONFLICT (organisation) DO UPDATE SET revision = excluded.revision
    WHERE segment_sets.revision = $2
  RETURNING revision`;

/**
 * Parameters: organisation, revision, name, note, condition, time, used segments. The revision becomes the segment's
 * number, and the number after which its changes are counted.
 */
export const saveSegmentSql = `INSERT INTO segments
    (organisation, segment, name, note, condition, uses, created_at_ms, saved_at_ms, members, last_seq, kept_after_seq)
  VALUES ($1, $2, $3, $4, $5, $7, $6, $6, 0, $2, $2)
  ON CONFLICT (organisation, name) DO UPDATE
    SET note = excluded.note, condition = excluded.condition, uses = excluded.uses,
      saved_at_ms = excluded.saved_at_ms, token = NULL`;

export function definitionValues(
  organisation: OrganisationNumber,
  revision: number,
  { name, note, conditionJson, uses }: SegmentDefinition,
  nowMs: number,
): Value[] {
  return [organisation, revision, name, note, conditionJson, nowMs, JSON.stringify(uses)];
}

/**
 * Returns the revision after a segment was deleted. It is higher than the numbers of all its changes, so that a segment
 * that gets its name later does not use them again.
 */
export function revisionAfterDeletion(revision: number, lastSeq: number): number {
  return Math.max(revision, lastSeq) + 1;
}

/** Parameters: organisation, name. Returns the number of the segment's last change. */
export const markDeletedSql = `UPDATE segments SET name = NULL, token = NULL
  WHERE organisation = $1 AND name = $2 RETURNING last_seq`;

/** Parameters: the times of `DueTimes`. */
export const dueSql = `SELECT organisation, name FROM segments
  WHERE name IS NOT NULL
    AND (evaluated_at_ms IS NULL OR evaluated_at_ms < $1 OR evaluated_at_ms < saved_at_ms)
    AND saved_at_ms < $2 AND (failure IS NULL OR attempted_at_ms < $2)
  ORDER BY attempted_at_ms NULLS FIRST`;

export function dueSegmentOf([organisation, name]: readonly unknown[]): DueSegment {
  return { organisation: Number(organisation), name: name as string };
}

/**
 * Parameters: organisation, segment, token, time, and the time before which an evaluation counts as abandoned. An
 * evaluation can begin again, because the process that began it may have ended.
 */
export const beginSql = `UPDATE segments SET token = $3, token_at_ms = $4
  WHERE organisation = $1 AND segment = $2 AND name IS NOT NULL
    AND (token IS NULL OR token = $3 OR token_at_ms < $5)
  RETURNING ${columns}`;

/** Parameters: organisation, segment, token, time. Returns no row if the evaluation has been ended. */
export const keepTokenSql = `UPDATE segments SET token_at_ms = $4
  WHERE organisation = $1 AND segment = $2 AND token = $3 RETURNING segment`;

/** Parameters: organisation, segment, token, time, duration, entered, left. */
export const finishSql = `UPDATE segments
  SET token = NULL, last_seq = last_seq + $6 + $7, members = members + $6 - $7, evaluated_at_ms = $4,
    attempted_at_ms = $4, failure = NULL, evaluation_ms = $5, entered_members = $6, left_members = $7
  WHERE organisation = $1 AND segment = $2 AND token = $3 RETURNING segment`;

/** Parameters: organisation, segment, token, time, reason. */
export const failSql = `UPDATE segments SET token = NULL, attempted_at_ms = $4, failure = $5
  WHERE organisation = $1 AND segment = $2 AND token = $3`;

const membershipColumns = ['customer_id', 'entered_seq', 'since_ms', 'left_seq', 'left_at_ms'] as const;

/** Whether a change has become visible. */
const isVisible = (seq: string): string =>
  `${seq} <= (SELECT last_seq FROM segments WHERE organisation = $1 AND segment = $2)`;

/** Parameters: organisation, segment, customer, number, limit. */
export const membershipsSql = `SELECT customer_id, entered_seq, since_ms,
    CASE WHEN ${isVisible('left_seq')} THEN left_seq END, CASE WHEN ${isVisible('left_seq')} THEN left_at_ms END
  FROM segment_memberships
  WHERE organisation = $1 AND segment = $2 AND (customer_id, entered_seq) > ($3, $4) AND ${isVisible('entered_seq')}
  ORDER BY customer_id, entered_seq LIMIT $5`;

/** Parameters: organisation, segment. */
export const lastSeqSql = 'SELECT last_seq FROM segments WHERE organisation = $1 AND segment = $2';

/** Like `membershipsSql`, but with what is not visible yet, so that it never reads more rows than the limit. */
export const writtenMembershipsSql = `SELECT ${membershipColumns.join(', ')} FROM segment_memberships
  WHERE organisation = $1 AND segment = $2 AND (customer_id, entered_seq) > ($3, $4)
  ORDER BY customer_id, entered_seq LIMIT $5`;

export function membershipOf(values: readonly unknown[]): Membership {
  const [customerId, enteredSeq, sinceMs, leftSeq, leftAtMs] = values;
  return {
    customerId: customerId as string,
    enteredSeq: Number(enteredSeq),
    sinceMs: Number(sinceMs),
    leftSeq: leftSeq === null ? null : Number(leftSeq),
    leftAtMs: leftAtMs === null ? null : Number(leftAtMs),
  };
}

export function membershipValues(membership: Membership): Value[] {
  const { customerId, enteredSeq, sinceMs, leftSeq, leftAtMs } = membership;
  return [customerId, enteredSeq, sinceMs, leftSeq, leftAtMs];
}

/** The lowest id. With the number 0, it is before the position of every membership. */
export const NIL_ID = '00000000-0000-0000-0000-000000000000';

/** Parameters: organisation, segment, customer. */
export const memberSinceSql = `SELECT since_ms FROM segment_memberships
  WHERE organisation = $1 AND segment = $2 AND customer_id = $3 AND ${isVisible('entered_seq')}
    AND (left_seq IS NULL OR NOT ${isVisible('left_seq')})`;

/** The number after which changes are wanted. */
const wantedAfter =
  'coalesce($3, (SELECT kept_after_seq FROM segments WHERE organisation = $1 AND segment = $2))';

/** Parameters: organisation, segment, number or null, limit. */
export const memberChangesSql = `SELECT * FROM (
    SELECT customer_id, 1 AS has_entered, entered_seq AS seq, since_ms AS at_ms FROM segment_memberships
      WHERE organisation = $1 AND segment = $2 AND entered_seq > ${wantedAfter} AND ${isVisible('entered_seq')}
      ORDER BY entered_seq LIMIT $4) AS entered
  UNION ALL SELECT * FROM (
    SELECT customer_id, 0 AS has_entered, left_seq AS seq, left_at_ms AS at_ms FROM segment_memberships
      WHERE organisation = $1 AND segment = $2 AND left_seq > ${wantedAfter} AND ${isVisible('left_seq')}
      ORDER BY left_seq LIMIT $4) AS departed
  ORDER BY seq LIMIT $4`;

/**
 * Parameters: organisation, segment. The bounds must be read after the changes. Otherwise changes that expire between
 * the two statements would be missing, and the bounds would not show it.
 */
export const changeBoundsSql = `SELECT last_seq, kept_after_seq FROM segments
  WHERE organisation = $1 AND segment = $2 AND name IS NOT NULL`;

/** `bounds` is the row of `changeBoundsSql`, if there is one. */
export function memberChangesRead(
  afterSeq: number | null,
  changes: readonly (readonly unknown[])[],
  bounds: readonly unknown[] | undefined,
): MemberChangesRead {
  if (bounds === undefined) return { kind: 'deleted' };
  const [latest, keptAfterSeq] = bounds.map(Number) as [number, number];
  if (afterSeq !== null && (afterSeq < keptAfterSeq || afterSeq > latest)) return { kind: 'gone', latest };
  return { kind: 'changes', changes: changes.map(memberChangeOf), latest };
}

function memberChangeOf(values: readonly unknown[]): NumberedMemberChange {
  const [customerId, hasEntered, seq, atMs] = values;
  return {
    customerId: customerId as string,
    hasEntered: Number(hasEntered) === 1,
    seq: Number(seq),
    atMs: Number(atMs),
  };
}

/** Every segment of every organisation, with whether it is deleted. */
export const allSegmentsSql =
  'SELECT organisation, segment, CASE WHEN name IS NULL THEN 1 ELSE 0 END FROM segments';

/** Parameters: organisation, segment, limit. The memberships that ended first. */
export const endedSql = `SELECT left_seq, left_at_ms FROM segment_memberships
  WHERE organisation = $1 AND segment = $2 AND left_seq IS NOT NULL AND ${isVisible('left_seq')}
  ORDER BY left_seq LIMIT $3`;

/** Selects the ended memberships to delete: those that ended before the time or up to the number. */
export interface EndedBounds {
  readonly leftBeforeMs: number;
  readonly upToSeq: number;
}

/**
 * Returns the number of the last membership to delete, or null if there is none. `ended` has the rows of `endedSql`,
 * which are sorted by time, too. A condition on the time in the SQL would read all memberships that ended.
 */
export function lastToDelete(
  ended: readonly (readonly unknown[])[],
  { leftBeforeMs, upToSeq }: EndedBounds,
): number | null {
  const last = ended.findLast(
    ([leftSeq, leftAtMs]) => Number(leftAtMs) < leftBeforeMs || Number(leftSeq) <= upToSeq,
  );
  return last === undefined ? null : Number(last[0]);
}

/** Parameters: organisation, segment, number. */
export const deleteEndedSql =
  'DELETE FROM segment_memberships WHERE organisation = $1 AND segment = $2 AND left_seq <= $3';

/** Parameters: organisation, segment, number. */
export const keepAfterSql = `UPDATE segments SET kept_after_seq = $3
  WHERE organisation = $1 AND segment = $2 AND kept_after_seq < $3`;

/** Parameters: organisation, segment, number, limit. The numbers of those who entered after the given number. */
export const enteredAfterSql = `SELECT entered_seq FROM segment_memberships
  WHERE organisation = $1 AND segment = $2 AND entered_seq > $3 ORDER BY entered_seq LIMIT $4`;

/** Parameters: organisation, segment, number before the first, last number. */
export const deleteEnteredSql = `DELETE FROM segment_memberships
  WHERE organisation = $1 AND segment = $2 AND entered_seq > $3 AND entered_seq <= $4`;

/** Parameters: organisation, segment, number, limit. The numbers of those who left after the given number. */
export const leftAfterSql = `SELECT left_seq FROM segment_memberships
  WHERE organisation = $1 AND segment = $2 AND left_seq > $3 ORDER BY left_seq LIMIT $4`;

/** Parameters: organisation, segment, number before the first, last number. */
export const undoLeavingSql = `UPDATE segment_memberships SET left_seq = NULL, left_at_ms = NULL
  WHERE organisation = $1 AND segment = $2 AND left_seq > $3 AND left_seq <= $4`;

/** Parameters: organisation, segment. */
export const deleteSegmentSql =
  'DELETE FROM segments WHERE organisation = $1 AND segment = $2 AND name IS NULL';

/** Parameters: organisation, condition, then `segmentValues`. */
export const copySegmentSql = `INSERT INTO segments (organisation, condition, ${columns})
  VALUES ($1, $2, ${segmentColumns.map((_, at) => `$${at + 3}`).join(', ')})`;

/** Returns the statement that adds memberships. `values` is the SQL of their rows. */
export function copyMembershipsSql(values: string): string {
  return `INSERT INTO segment_memberships (organisation, segment, ${membershipColumns.join(', ')}) ${values}`;
}
