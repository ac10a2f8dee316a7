// Copies organisations, keys, records, interactions, ledgers and segments from one store to another. The stores may be
// of different kinds. All writes are idempotent, so an interrupted copy can simply be run again. At the end, the counts
// and checksums of both stores are compared.

import { createHash, hash } from 'node:crypto';
import { type RecordTypeName, recordTypes } from '@headgate/catalogue/record-types.ts';
import { uploadOrder } from '@headgate/catalogue/references.ts';
import { Failure } from './failure.ts';
import type { InteractionPosition } from './store/interactions.ts';
import type { ApiKey } from './store/keys.ts';
import type { LedgerPart } from './store/ledger.ts';
import type { OrganisationNumber, Page, Row } from './store/rows.ts';
import { MEMBERSHIPS_AT_ONCE, type Membership, type Segment } from './store/segments.ts';
import type { Store } from './store/store.ts';

const PAGE_ROWS = 5000;

/** A part of the data that is copied and compared. The name of a type stands for its records. */
export type Part = RecordTypeName | 'interactions' | 'ledger' | 'segments' | 'keys';

export interface Progress {
  readonly doing: 'copying' | 'comparing';
  readonly organisation: string;
  readonly part: Part;
  readonly doneRows: number;
  readonly totalRows: number;
}

export interface Comparison {
  readonly organisation: string;
  readonly part: Part;
  readonly fromCount: number;
  readonly toCount: number;
  readonly isEqual: boolean;
}

/** A part that consists of rows. All such parts are copied and compared in the same way. */
interface RowPart {
  readonly name: Part;
  count(store: Store, organisation: OrganisationNumber): Promise<number>;
  pages(store: Store, organisation: OrganisationNumber): AsyncIterable<readonly Row[]>;
  write(store: Store, organisation: OrganisationNumber, rows: readonly Row[]): Promise<unknown>;
}

function recordPart(type: RecordTypeName): RowPart {
  return {
    name: type,
    count: (store, organisation) => store.countRecords(organisation, type),
    pages: (store, organisation) =>
      everyPage((afterId: string | null) =>
        store.records(organisation, type, { afterId, limit: PAGE_ROWS, includeDeleted: true }),
      ),
    write: (store, organisation, rows) =>
      store.write({ organisation, type, batches: [rows], idempotencyRecord: null, entry: null }),
  };
}

const interactionPart: RowPart = {
  name: 'interactions',
  count: (store, organisation) => store.countInteractions(organisation),
  pages: (store, organisation) =>
    everyPage((before: InteractionPosition | null) =>
      store.interactions(organisation, { equal: {}, from: null, to: null, before, limit: PAGE_ROWS }),
    ),
  write: (store, organisation, rows) =>
    Promise.all(
      rows.map((row) => store.writeInteraction({ organisation, row, idempotencyRecord: null, entry: null })),
    ),
};

/** Ordered so that every record is copied before the records that refer to it. */
const parts: readonly RowPart[] = [...uploadOrder(recordTypes).map(recordPart), interactionPart];

async function* everyPage<Position>(
  pageAfter: (position: Position | null) => Promise<Page<Position>>,
): AsyncIterable<readonly Row[]> {
  let position: Position | null = null;
  do {
    const { rows, next }: Page<Position> = await pageAfter(position);
    if (rows.length > 0) yield rows;
    position = next;
  } while (position !== null);
}

interface Pair {
  readonly name: string;
  readonly from: OrganisationNumber;
  readonly to: OrganisationNumber;
}

interface Digest {
  readonly count: number;
  readonly checksum: string;
}

export async function copyEverything(
  from: Store,
  to: Store,
  onProgress: (progress: Progress) => void,
): Promise<readonly Comparison[] | Failure> {
  const pairs = await copyOrganisations(from, to);
  if (pairs instanceof Failure) return pairs;
  const comparisons: Comparison[] = [];
  for (const pair of pairs) {
    await copyKeys(from, to, pair);
    for (const part of parts) {
      const onRows = progressOf('copying', pair, part.name, await part.count(from, pair.from), onProgress);
      for await (const rows of part.pages(from, pair.from)) {
        await part.write(to, pair.to, rows);
        onRows(rows.length);
      }
    }
    await copyLedger(from, to, pair, onProgress);
    await copySegments(from, to, pair, onProgress);
  }
  for (const pair of pairs) comparisons.push(...(await compare(from, to, pair, onProgress)));
  return comparisons;
}

/**
 * Creates the organisations that the target does not have. Resolves to the numbers of each organisation in both stores,
 * or to a failure if the organisations cannot be matched.
 */
async function copyOrganisations(from: Store, to: Store): Promise<readonly Pair[] | Failure> {
  const present = await to.organisations();
  const idsByName = new Map(present.map(({ name, orgId }) => [name, orgId]));
  const numbers = new Map(present.map(({ orgId, organisation }) => [orgId, organisation]));
  const organisations = await from.organisations();
  if (organisations.length === 0)
    return new Failure('the source has no organisations, so there is nothing to copy');
  const clash = organisations.find(({ name, orgId }) => (idsByName.get(name) ?? orgId) !== orgId);
  if (clash !== undefined) return nameTaken(clash.name);
  const pairs: Pair[] = [];
  for (const { organisation, orgId, name, createdAtMs } of organisations) {
    const there = numbers.get(orgId) ?? (await to.createOrganisation(name, orgId, createdAtMs))?.organisation;
    if (there === undefined) return nameTaken(name);
    pairs.push({ name, from: organisation, to: there });
  }
  return pairs;
}

function nameTaken(name: string): Failure {
  return new Failure(`the target has another organisation named "${name}"; copy into an empty database`);
}

/** Copies the keys. Keys from an earlier copy are updated, because they may have been revoked or rotated since. */
async function copyKeys(from: Store, to: Store, pair: Pair): Promise<void> {
  const present = new Set((await to.keysOf(pair.to)).map(({ keyId }) => keyId));
  const keys = await from.keysOf(pair.from);
  const missing = new Map(
    keys
      .filter(({ keyId }) => !present.has(keyId))
      .map(({ orgId: _, ...key }) => [key.keyId, { ...key, organisation: pair.to }]),
  );
  for (const { keyId, expiresAtMs, revokedAtMs, replacedBy } of keys) {
    if (!present.has(keyId)) continue;
    const successor = replacedBy === null ? undefined : missing.get(replacedBy);
    // A key with a successor always has an expiry, so `expiresAtMs` is not null.
    if (successor !== undefined && (await to.replaceKey(keyId, expiresAtMs!, successor))) {
      missing.delete(successor.keyId);
    }
    if (revokedAtMs !== null) await to.revokeKey(keyId, revokedAtMs);
  }
  for (const key of missing.values()) await to.addKey(key);
  const lastUsedAtMs = keys.flatMap((key): [string, number][] =>
    key.lastUsedAtMs === null ? [] : [[key.keyId, key.lastUsedAtMs]],
  );
  if (lastUsedAtMs.length > 0) await to.noteKeysUsed(new Map(lastUsedAtMs));
}

/**
 * Copies the entries that the target does not have. They are copied last, so that a reader of the target sees no entry
 * without the records that it describes, unless the source was written to meanwhile. The comparison then shows that.
 */
async function copyLedger(
  from: Store,
  to: Store,
  pair: Pair,
  onProgress: (progress: Progress) => void,
): Promise<void> {
  const present = await to.latestEntry(pair.to);
  const missing = Math.max(0, (await from.latestEntry(pair.from)) - present);
  const onEntries = progressOf('copying', pair, 'ledger', missing, onProgress);
  for await (const part of ledgerParts(from, pair.from, present)) {
    await to.addLedgerPart(pair.to, part);
    onEntries(part.entries.length);
  }
}

/**
 * Replaces the segments of the target, with their members. An evaluation that is running in the source is not copied. A
 * segment is copied after its members, so that a reader of the target never sees some of them.
 */
async function copySegments(
  from: Store,
  to: Store,
  pair: Pair,
  onProgress: (progress: Progress) => void,
): Promise<void> {
  const { revision, segments } = await from.segments(pair.from);
  const members = segments.reduce((sum, segment) => sum + segment.members, 0);
  const onMembers = progressOf('copying', pair, 'segments', members, onProgress);
  // A segment that is saved meanwhile is deleted, too.
  for (;;) {
    const present = await to.segments(pair.to);
    const [first] = present.segments;
    if (first === undefined) break;
    await to.deleteSegment(pair.to, present.revision, first.name);
  }
  for (const segment of segments) {
    const conditions = await from.segmentConditions(pair.from, [segment.name]);
    await to.removeMemberships(pair.to, segment.segment);
    for await (const memberships of everyMembership(from, pair.from, segment)) {
      await to.copyMemberships(pair.to, segment.segment, memberships);
      onMembers(memberships.length);
    }
    await to.copySegment(pair.to, revision, segment, conditions.get(segment.name)!);
  }
}

async function* everyMembership(
  store: Store,
  organisation: OrganisationNumber,
  { segment }: Segment,
): AsyncIterable<readonly Membership[]> {
  let last: Membership | null = null;
  for (;;) {
    const page: readonly Membership[] = await store.memberships(
      organisation,
      segment,
      last,
      MEMBERSHIPS_AT_ONCE,
    );
    if (page.length > 0) yield page;
    if (page.length < MEMBERSHIPS_AT_ONCE) return;
    last = page.at(-1)!;
  }
}

async function* ledgerParts(
  store: Store,
  organisation: OrganisationNumber,
  after: number,
): AsyncIterable<LedgerPart> {
  let part: LedgerPart | null = null;
  do {
    part = await store.ledgerPart(organisation, part?.lastSeq ?? after);
    yield part;
  } while (!part.isLast);
}

async function compare(
  from: Store,
  to: Store,
  pair: Pair,
  onProgress: (progress: Progress) => void,
): Promise<readonly Comparison[]> {
  const comparison = (part: Part, here: Digest, there: Digest): Comparison => ({
    organisation: pair.name,
    part,
    fromCount: here.count,
    toCount: there.count,
    isEqual: here.checksum === there.checksum,
  });
  const [ours, theirs] = [await from.keysOf(pair.from), await to.keysOf(pair.to)];
  const comparisons = [comparison('keys', digestOfKeys(ours), digestOfKeys(theirs))];
  for (const part of parts) {
    const totalRows = 2 * (await part.count(from, pair.from));
    const onRows = progressOf('comparing', pair, part.name, totalRows, onProgress);
    const here = await digestOf(part.pages(from, pair.from), onRows);
    const there = await digestOf(part.pages(to, pair.to), onRows);
    comparisons.push(comparison(part.name, here, there));
  }
  const totalEntries = 2 * (await from.latestEntry(pair.from));
  const onEntries = progressOf('comparing', pair, 'ledger', totalEntries, onProgress);
  const here = await digestOfLedger(ledgerParts(from, pair.from, 0), onEntries);
  const there = await digestOfLedger(ledgerParts(to, pair.to, 0), onEntries);
  comparisons.push(comparison('ledger', here, there));
  comparisons.push(
    comparison('segments', await digestOfSegments(from, pair.from), await digestOfSegments(to, pair.to)),
  );
  return comparisons;
}

/** The checksum is a sum, because stores may list interactions of the same time in different orders. */
async function digestOf(
  pages: AsyncIterable<readonly Row[]>,
  onRows: (rows: number) => void,
): Promise<Digest> {
  let sum = 0n;
  let count = 0;
  for await (const rows of pages) {
    for (const row of rows) sum += BigInt(`0x${hash('sha256', JSON.stringify(row))}`);
    count += rows.length;
    onRows(rows.length);
  }
  return { count, checksum: sum.toString(16) };
}

/** Returns the count of entries, and the checksum of entries, ids, bounds and usage. */
async function digestOfLedger(
  ledger: AsyncIterable<LedgerPart>,
  onEntries: (entries: number) => void,
): Promise<Digest> {
  const checksum = createHash('sha256');
  let count = 0;
  for await (const { entries, usage, isLast, ...bounds } of ledger) {
    for (const { ids, ...entry } of entries) {
      checksum.update(`${JSON.stringify(entry)}\n`).update(ids);
    }
    count += entries.length;
    if (isLast) {
      const lines = usage.map((sums) => JSON.stringify(sums)).sort();
      checksum.update(JSON.stringify([bounds, lines]));
    }
    onEntries(entries.length);
  }
  return { count, checksum: checksum.digest('hex') };
}

/** Returns the count of segments, and the checksum of the segments and their members. */
async function digestOfSegments(store: Store, organisation: OrganisationNumber): Promise<Digest> {
  const checksum = createHash('sha256');
  const { segments } = await store.segments(organisation);
  for (const segment of segments) {
    const [condition] = await store.segmentConditions(organisation, [segment.name]);
    checksum.update(`${JSON.stringify([segment, condition])}\n`);
    for await (const memberships of everyMembership(store, organisation, segment)) {
      for (const membership of memberships) checksum.update(`${JSON.stringify(membership)}\n`);
    }
  }
  return { count: segments.length, checksum: checksum.digest('hex') };
}

/**
 * Returns the count and the checksum of keys. The checksum leaves out the organisation's number, which differs between
 * databases, and the time of the last use, which changes with every use.
 */
function digestOfKeys(keys: readonly ApiKey[]): Digest {
  const lines = keys
    .map(({ organisation: _, lastUsedAtMs: __, ...key }) => JSON.stringify(Object.entries(key).sort()))
    .sort();
  return { count: keys.length, checksum: createHash('sha256').update(lines.join('\n')).digest('hex') };
}

function progressOf(
  doing: Progress['doing'],
  { name }: Pair,
  part: Part,
  totalRows: number,
  onProgress: (progress: Progress) => void,
): (rows: number) => void {
  let doneRows = 0;
  return (rows) => {
    doneRows += rows;
    onProgress({ doing, organisation: name, part, doneRows, totalRows });
  };
}
