// The store interface for segments: their conditions, their members, and who entered and left them.
//
// An evaluation writes its changes in steps and makes them all visible at its end. One evaluation of a segment runs at a
// time. What an interrupted one has written is never visible, and the next one deletes it.

import type { OrganisationNumber } from './rows.ts';

export interface Segment {
  /** Identifies the segment within its organisation. Unlike its name, it is never used again. */
  readonly segment: number;
  readonly name: string;
  readonly note: string | null;
  /** The names of the segments that the condition uses itself. */
  readonly uses: readonly string[];
  readonly createdAtMs: number;
  readonly savedAtMs: number;
  /** How many members the segment has. */
  readonly members: number;
  /** The number of the last change of its members. */
  readonly lastSeq: number;
  /** The changes after this number are kept. */
  readonly keptAfterSeq: number;
  /** The last evaluation that succeeded. */
  readonly evaluation: SegmentEvaluation | null;
  /** Why the last evaluation failed. Null if it succeeded. */
  readonly failure: { readonly atMs: number; readonly reason: string } | null;
}

export interface SegmentEvaluation {
  readonly atMs: number;
  readonly ms: number;
  readonly entered: number;
  readonly left: number;
}

/** All segments of an organisation, without their conditions, which can be long. */
export interface SegmentSet {
  /** Changes whenever a segment is saved or deleted. */
  readonly revision: number;
  /** Sorted by name. */
  readonly segments: readonly Segment[];
}

export interface SegmentDefinition {
  readonly name: string;
  readonly note: string | null;
  readonly conditionJson: string;
  readonly uses: readonly string[];
}

/** When a segment has to be evaluated. */
export interface DueTimes {
  /** A segment is due if its last evaluation was before this time, or before it was saved. */
  readonly evaluatedBeforeMs: number;
  /**
   * A segment that was saved after this time, or whose evaluation failed after it, is not due. The request that saves a
   * segment evaluates it.
   */
  readonly attemptedBeforeMs: number;
}

export interface DueSegment {
  readonly organisation: OrganisationNumber;
  readonly name: string;
}

/** Identifies a running evaluation. */
export interface EvaluationKey {
  readonly organisation: OrganisationNumber;
  readonly segment: number;
  readonly token: string;
}

/** A customer who entered or left a segment. */
export interface MemberChange {
  readonly customerId: string;
  readonly hasEntered: boolean;
}

export interface NumberedMemberChange extends MemberChange {
  readonly seq: number;
  readonly atMs: number;
}

/** Changes in the order of their numbers, or why they are not available. */
export type MemberChangesRead =
  | {
      readonly kind: 'changes';
      readonly changes: readonly NumberedMemberChange[];
      /** The number of the segment's last change. */
      readonly latest: number;
    }
  /** The changes after the number have expired in part, or there are none with such a number yet. */
  | { readonly kind: 'gone'; readonly latest: number }
  | { readonly kind: 'deleted' };

/** A period in which a customer is, or was, a member. */
export interface Membership {
  readonly customerId: string;
  readonly enteredSeq: number;
  readonly sinceMs: number;
  /** Null for a current member. */
  readonly leftSeq: number | null;
  readonly leftAtMs: number | null;
}

/** The position of a membership in the list, which is sorted by customer and then by number. */
export type MembershipPosition = Pick<Membership, 'customerId' | 'enteredSeq'>;

/** The most changes or memberships that one write has, because uploads wait for it. */
export const MEMBERSHIPS_AT_ONCE = 2000;

/**
 * How many changes of a segment are kept at most, besides those of its last evaluation. Otherwise a segment whose members
 * alternate at every evaluation would grow without end.
 */
export const KEPT_MEMBER_CHANGES = 1_000_000;

/** An evaluation that has written nothing for this long, not even an empty list of changes, was interrupted. */
export const EVALUATION_ABANDONED_MS = 60_000;

export interface SegmentStore {
  segments(organisation: OrganisationNumber): Promise<SegmentSet>;
  /** Returns the conditions of segments, as JSON, by the names of the segments. Unknown names are left out. */
  segmentConditions(
    organisation: OrganisationNumber,
    names: readonly string[],
  ): Promise<ReadonlyMap<string, string>>;
  /**
   * Adds a segment or replaces its condition and note, and ends its running evaluation. Returns false and changes
   * nothing if the set has another revision now.
   */
  saveSegment(
    organisation: OrganisationNumber,
    revision: number,
    definition: SegmentDefinition,
    nowMs: number,
  ): Promise<boolean>;
  /** Deletes a segment with its members. Returns false and changes nothing if the set has another revision now. */
  deleteSegment(organisation: OrganisationNumber, revision: number, name: string): Promise<boolean>;
  /** Returns the segments of all organisations that have to be evaluated, the one that was tried longest ago first. */
  dueSegments(due: DueTimes): Promise<readonly DueSegment[]>;
  /**
   * Begins an evaluation, after undoing what an interrupted one has written. Returns the segment as it is now, or null
   * if it does not exist, another evaluation of it is running, or this one has been ended already.
   */
  beginEvaluation(key: EvaluationKey, nowMs: number): Promise<Segment | null>;
  /**
   * Writes changes of an evaluation, the first with the number `firstSeq`. Returns false and writes nothing if the
   * evaluation has been ended, because the segment was saved or deleted.
   */
  writeMemberChanges(
    key: EvaluationKey,
    firstSeq: number,
    changes: readonly MemberChange[],
    nowMs: number,
  ): Promise<boolean>;
  /** Makes the changes visible. Returns false if the evaluation has been ended. */
  finishEvaluation(key: EvaluationKey, evaluation: SegmentEvaluation): Promise<boolean>;
  /** Ends an evaluation without a result. */
  failEvaluation(key: EvaluationKey, nowMs: number, reason: string): Promise<void>;
  /** Returns up to `limit` memberships, former ones included. */
  memberships(
    organisation: OrganisationNumber,
    segment: number,
    after: MembershipPosition | null,
    limit: number,
  ): Promise<readonly Membership[]>;
  /** Returns since when the customer has been a member, or null if the customer is not a member. */
  memberSince(organisation: OrganisationNumber, segment: number, customerId: string): Promise<number | null>;
  /** Returns up to `limit` changes after a number, or the first ones of all that are kept if it is null. */
  memberChanges(
    organisation: OrganisationNumber,
    segment: number,
    afterSeq: number | null,
    limit: number,
  ): Promise<MemberChangesRead>;
  /** Deletes memberships that ended before the time, and all memberships of deleted segments. */
  expireMemberships(leftBeforeMs: number): Promise<void>;
  /**
   * Deletes the memberships of a segment that ended up to a number. Changes up to the last of these are then no longer
   * available.
   */
  expireMembershipsUpTo(organisation: OrganisationNumber, segment: number, seq: number): Promise<void>;
  /** Deletes the memberships of a deleted segment, or of one that an interrupted copy has not created yet. */
  removeMemberships(organisation: OrganisationNumber, segment: number): Promise<void>;
  /** Adds a segment of another store, with its number and its evaluation. */
  copySegment(
    organisation: OrganisationNumber,
    revision: number,
    segment: Segment,
    conditionJson: string,
  ): Promise<void>;
  /** Adds memberships of another store. */
  copyMemberships(
    organisation: OrganisationNumber,
    segment: number,
    memberships: readonly Membership[],
  ): Promise<void>;
}
