// Segments, their members, and what is known about both.

import type { Condition } from './condition.ts';
import type { ReadOptions } from './connection.ts';
import type { AsOf } from './sql.ts';

/** A segment as it is saved. */
export interface SegmentDefinition {
  readonly condition: Condition;
  /** A note for people, of at most 1000 characters. Default: none. */
  readonly note?: string | null | undefined;
}

export interface ListedSegment {
  readonly name: string;
  readonly note: string | null;
  /** How many members the segment has. */
  readonly count: number;
  /** When the segment was saved first. */
  readonly created_at: string;
  /** When the condition or the note was saved last. */
  readonly saved_at: string;
  /** The last evaluation that succeeded. Null if there is none. */
  readonly evaluation: SegmentEvaluation | null;
  /** Why the last evaluation failed. Null if it succeeded. The members are those before it. */
  readonly failure: SegmentFailure | null;
  /** The number of the last change of the members. */
  readonly latest: number;
}

export interface Segment extends ListedSegment {
  readonly condition: Condition;
  /** The segments whose conditions use this one. It cannot be deleted while there are any. */
  readonly used_by: readonly string[];
}

export interface SegmentEvaluation {
  /** When. Relative times in the condition are computed from it. */
  readonly at: string;
  readonly ms: number;
  /** How many customers became members. */
  readonly entered: number;
  /** How many customers were no longer members. */
  readonly left: number;
}

export interface SegmentFailure {
  readonly at: string;
  readonly message: string;
}

export interface SegmentPreview {
  /** How many customers the condition holds for. */
  readonly count: number;
  /** For how many customers each node holds, outer nodes first. */
  readonly nodes: readonly {
    /** The path of the node, such as `all[1].not`. Empty for the whole condition. */
    readonly path: string;
    readonly count: number;
  }[];
  /** The ids of up to ten of the customers. */
  readonly sample: readonly string[];
  readonly ms: number;
  readonly as_of: AsOf;
}

export interface SegmentMember {
  readonly customer_id: string;
  /** When the customer became a member. */
  readonly since: string;
}

export interface MemberExplanation {
  /** Whether the condition holds for the customer now. */
  readonly member: boolean;
  /** When an evaluation found the customer to be a member. Null if the last one did not. */
  readonly since: string | null;
  /** What each node saw, outer nodes first. */
  readonly nodes: readonly ExplainedNode[];
  readonly as_of: AsOf;
}

export interface ExplainedNode {
  /** The path of the node, such as `all[1].not`. Empty for the whole condition. */
  readonly path: string;
  readonly holds: boolean;
  /**
   * The value that the node tested: of a field, a number of rows, a sum, a time, or a position in a sample. Null if
   * there is none, and for combinations and segments.
   */
  readonly saw: string | number | boolean | null;
}

export interface MemberChange {
  /** The number of the change. */
  readonly seq: number;
  readonly customer_id: string;
  readonly change: 'entered' | 'left';
  /** When an evaluation noticed it. */
  readonly at: string;
}

export interface MemberChangesPage {
  /** In the order of their numbers. */
  readonly changes: readonly MemberChange[];
  /** The position after this page. Store it once all changes of the page are processed. */
  readonly next: number;
  /** The number of the last change of the segment. */
  readonly latest: number;
}

export interface ListMembersOptions extends ReadOptions {
  /** The maximum number of members per request, up to 1000. Default: 1000. */
  pageSize?: number | undefined;
}

export interface MemberChangesOptions extends ReadOptions {
  /** The position: `next` of the last page that was processed. Default: the oldest change that the server keeps. */
  after?: number | undefined;
  /** The maximum number of changes per page, up to 5000. Default: 1000. */
  pageSize?: number | undefined;
}
