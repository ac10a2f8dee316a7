// Keeps the table `segment_members` of a replica like the members that the store has.

import type { DuckDBValue } from '@duckdb/node-api';
import type { OrganisationNumber } from '../store/rows.ts';
import type { MemberChangesRead, Membership, Segment, SegmentStore } from '../store/segments.ts';

const MEMBERS_AT_ONCE = 5000;

/** A segment whose members are in the replica, up to the change with this number. */
export interface SegmentState {
  readonly segment: number;
  readonly name: string;
  readonly lastSeq: number;
}

export interface MembersCopy {
  readonly store: Pick<SegmentStore, 'memberships' | 'memberChanges'>;
  readonly organisation: OrganisationNumber;
  /** Runs a statement in the replica. */
  run(sql: string, values: DuckDBValue[]): Promise<unknown>;
}

export function isSame(state: SegmentState, { segment, name }: Segment): boolean {
  return state.segment === segment && state.name === name;
}

/** Returns whether a segment has later changes than the replica. A segment without a state was deleted meanwhile. */
export function hasLaterChanges(segments: readonly Segment[], states: readonly SegmentState[]): boolean {
  const seqs = new Map(states.map(({ segment, lastSeq }) => [segment, lastSeq]));
  return segments.some(({ segment, lastSeq }) => seqs.get(segment)! < lastSeq);
}

export async function removeMembers({ run }: MembersCopy, name: string): Promise<void> {
  await run('DELETE FROM segment_members WHERE segment = ?', [name]);
}

/**
 * Brings the members of a segment up to date and returns the number of the last change. Copies all members if there is
 * no known state, or if the store does not have all changes since then: they have expired, or the store was restored
 * from a backup.
 */
export async function copyMembers(
  copy: MembersCopy,
  segment: Segment,
  known: SegmentState | undefined,
): Promise<number> {
  let followed: Followed =
    known === undefined
      ? { kind: 'gone', latest: segment.lastSeq }
      : await followMembers(copy, segment, known.lastSeq);
  while (followed.kind === 'gone') {
    await copyAll(copy, segment);
    followed = await followMembers(copy, segment, followed.latest);
  }
  return followed.lastSeq;
}

type Followed =
  | { readonly kind: 'followed'; readonly lastSeq: number }
  | Extract<MemberChangesRead, { readonly kind: 'gone' }>;

async function copyAll(copy: MembersCopy, { segment, name }: Segment): Promise<void> {
  const { store, organisation } = copy;
  await removeMembers(copy, name);
  for (let last: Membership | null = null; ; ) {
    const page: readonly Membership[] = await store.memberships(organisation, segment, last, MEMBERS_AT_ONCE);
    await insert(
      copy,
      name,
      page.filter(({ leftSeq }) => leftSeq === null),
    );
    if (page.length < MEMBERS_AT_ONCE) return;
    last = page.at(-1)!;
  }
}

/** Applies the changes after a number. */
async function followMembers(
  copy: MembersCopy,
  { segment, name }: Segment,
  afterSeq: number,
): Promise<Followed> {
  const { store, organisation, run } = copy;
  for (let lastSeq = afterSeq; ; ) {
    const read = await store.memberChanges(organisation, segment, lastSeq, MEMBERS_AT_ONCE);
    if (read.kind === 'gone') return read;
    const changes = read.kind === 'deleted' ? [] : read.changes;
    if (changes.length === 0) return { kind: 'followed', lastSeq };
    const changed = new Map(changes.map((change) => [change.customerId, change]));
    await run(
      `DELETE FROM segment_members WHERE segment = ? AND customer_id IN (SELECT unnest(string_split(?, ','))::UUID)`,
      [name, [...changed.keys()].join(',')],
    );
    const entered = [...changed.values()].filter(({ hasEntered }) => hasEntered);
    await insert(
      copy,
      name,
      entered.map(({ customerId, atMs }) => ({ customerId, sinceMs: atMs })),
    );
    lastSeq = changes.at(-1)!.seq;
  }
}

async function insert(
  { run }: MembersCopy,
  name: string,
  members: readonly Pick<Membership, 'customerId' | 'sinceMs'>[],
): Promise<void> {
  if (members.length === 0) return;
  const ids = members.map(({ customerId }) => customerId);
  const times = members.map(({ sinceMs }) => sinceMs);
  await run(
    `INSERT INTO segment_members SELECT ?, unnest(string_split(?, ','))::UUID,
      make_timestamptz(unnest(string_split(?, ','))::BIGINT * 1000)`,
    [name, ids.join(','), times.join(',')],
  );
}
